/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe_point.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define MAX_SKIP 24 /* bytes of prologue looked through */

/* What arch/x86/kernel/uprobes.c emulates: push of a register, one-byte nop, near
 * jump and call, and conditional jumps. */
static bool x86_emulated(const uint8_t *b, size_t len)
{
	if (len >= 1 && ((b[0] >= 0x50 && b[0] <= 0x57) || b[0] == 0x90))
		return true;
	if (len >= 2 && b[0] == 0x41)
		return b[1] >= 0x50 && b[1] <= 0x57;
	if (len >= 2 && (b[0] == 0xeb || (b[0] >= 0x70 && b[0] <= 0x7f)))
		return true;
	if (len >= 5 && (b[0] == 0xe8 || b[0] == 0xe9))
		return true;
	return len >= 6 && b[0] == 0x0f && b[1] >= 0x80 && b[1] <= 0x8f;
}

static bool x86_is_argument(uint16_t reg)
{
	/* clang-format off */
	static const uint16_t regs[] = {
		X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL,
		X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL,
		X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH,
		X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH,
		X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B,
		X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B,
		X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL,
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		if (regs[i] == reg)
			return true;
	return false;
}

/* What arch/arm64/kernel/probes simulates: relative addresses, and branches but for those that check a signed address.
 * A nop is simulated since 6.12 only, the literal loads that older kernels simulate are refused by newer ones. */
static bool arm64_emulated(const uint8_t *b, size_t len)
{
	uint32_t op;

	if (len < sizeof(op))
		return false;
	op = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	return (op & 0x1f000000) == 0x10000000 /* adr, adrp */ ||
	       (op & 0x7c000000) == 0x14000000 /* b, bl */ ||
	       (op & 0x7c000000) == 0x34000000 /* cbz, cbnz, tbz, tbnz */ ||
	       (op & 0xff000010) == 0x54000000 /* b.cond */ || (op & 0xfffffc1f) == 0xd61f0000 /* br */ ||
	       (op & 0xfffffc1f) == 0xd63f0000 /* blr */ || (op & 0xfffffc1f) == 0xd65f0000 /* ret */;
}

static bool is_emulated(int machine, const uint8_t *code, size_t len)
{
	return machine == EM_X86_64 ? x86_emulated(code, len)
				    : machine == EM_AARCH64 && arm64_emulated(code, len);
}

enum nps_probe_class nps_probe_point__class(int machine, const uint8_t *code, size_t len, size_t offset)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	if (offset >= len)
		return NPS_PROBE_STEPPED;
	if (machine == EM_X86_64 && len - offset >= sizeof(nop5) &&
	    !memcmp(code + offset, nop5, sizeof(nop5)))
		return NPS_PROBE_NOP;
	return is_emulated(machine, code + offset, len - offset) ? NPS_PROBE_EMULATED : NPS_PROBE_STEPPED;
}

static bool arm64_is_argument(uint16_t reg)
{
	return (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X8) || (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W8) ||
	       reg == ARM64_REG_LR || reg == ARM64_REG_SP || reg == ARM64_REG_WSP;
}

static bool writes_memory(int machine, const cs_insn *in)
{
	if (machine == EM_X86_64) {
		for (int i = 0; i < in->detail->x86.op_count; i++)
			if (in->detail->x86.operands[i].type == X86_OP_MEM &&
			    (in->detail->x86.operands[i].access & CS_AC_WRITE))
				return true;
		return false;
	}
	for (int i = 0; i < in->detail->arm64.op_count; i++)
		if (in->detail->arm64.operands[i].type == ARM64_OP_MEM)
			return true; /* loads and stores alike: rare before the frame is built */
	return false;
}

/* Hints that sign the return address (paciasp and kin) change the link register without saying so. */
static bool arm64_is_signing_hint(const cs_insn *in)
{
	uint32_t op;

	memcpy(&op, in->bytes, sizeof(op));
	return (op & 0xfffff01f) == 0xd503201f && (op & 0xffffff3f) != 0xd503241f; /* all but bti */
}

static bool harmless(csh cs, int machine, const cs_insn *in)
{
	cs_regs reads, writes;
	uint8_t nr = 0, nw = 0;

	if ((machine == EM_AARCH64 && arm64_is_signing_hint(in)) || cs_insn_group(cs, in, CS_GRP_JUMP) ||
	    cs_insn_group(cs, in, CS_GRP_CALL) || cs_insn_group(cs, in, CS_GRP_RET) ||
	    cs_insn_group(cs, in, CS_GRP_INT) || writes_memory(machine, in) ||
	    cs_regs_access(cs, in, reads, &nr, writes, &nw))
		return false;
	for (int i = 0; i < nw; i++)
		if (machine == EM_X86_64 ? x86_is_argument(writes[i]) : arm64_is_argument(writes[i]))
			return false;
	return true;
}

static bool into_skipped(uint64_t to, uint64_t target)
{
	return to > 0 && to <= target;
}

/* Does a branch inside the function lead to `target`, or to what was skipped before it? Then a probe
 * there would count loop turns. */
static bool is_branch_target(csh cs, int machine, const uint8_t *code, size_t len, uint64_t target)
{
	cs_insn *in = cs_malloc(cs);
	uint64_t addr = 0;
	bool hit = false;

	if (!in)
		return true;
	while (!hit && len && cs_disasm_iter(cs, &code, &len, &addr, in)) {
		if (!cs_insn_group(cs, in, CS_GRP_JUMP))
			continue;
		if (machine == EM_X86_64)
			hit = in->detail->x86.op_count == 1 &&
			      in->detail->x86.operands[0].type == X86_OP_IMM &&
			      into_skipped((uint64_t)in->detail->x86.operands[0].imm, target);
		else
			for (int i = 0; i < in->detail->arm64.op_count; i++)
				hit |= in->detail->arm64.operands[i].type == ARM64_OP_IMM &&
				       into_skipped((uint64_t)in->detail->arm64.operands[i].imm, target);
	}
	cs_free(in, 1);
	return hit || len; /* what could not be read may hold one */
}

size_t nps_probe_point(int machine, const uint8_t *code, size_t len)
{
	const uint8_t *at = code;
	size_t left = len, found = 0;
	uint64_t addr = 0;
	cs_insn *in;
	csh cs;

	if (machine != EM_X86_64 && machine != EM_AARCH64)
		return 0;
	if (cs_open(machine == EM_X86_64 ? CS_ARCH_X86 : CS_ARCH_ARM64,
		    machine == EM_X86_64 ? CS_MODE_64 : CS_MODE_ARM, &cs))
		return 0;
	cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON);
	in = cs_malloc(cs);
	while (in && cs_disasm_iter(cs, &at, &left, &addr, in)) {
		if (is_emulated(machine, in->bytes, in->size)) {
			found = in->address;
			break;
		}
		if (addr > MAX_SKIP || !harmless(cs, machine, in))
			break;
	}
	if (in)
		cs_free(in, 1);
	if (found && is_branch_target(cs, machine, code, len, found))
		found = 0;
	cs_close(&cs);
	return found;
}
