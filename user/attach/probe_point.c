/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_point.h"

#include <elf.h>
#include <linux/version.h>
#include <stdlib.h>
#include <string.h>

#include "attach/probe_block.h"

#define MAX_SKIP 256 /* bytes of prologue searched */
#define MAX_PARTS 16 /* parts of code outside a function that it jumps to */
#define PART 16384 /* bytes of such a part that are searched for jumps back, */
#define PART_BEFORE 4096 /* of which so many are before the target of the function's jump */

/*
 * Instructions that arch/x86/kernel/uprobes.c emulates: push of a register, one-byte nop, near jump and
 * call, and conditional jumps.
 */
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

/*
 * Instructions that arch/arm64/kernel/probes simulates: relative addresses, and branches except those that
 * check a signed address. A nop is simulated since 6.12 only; newer kernels refuse the literal loads that
 * older ones simulate.
 */
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

static bool is_nop(int machine, const uint8_t *code, size_t len, size_t at)
{
	static const uint8_t arm64[] = { 0x1f, 0x20, 0x03, 0xd5 };

	if (machine == EM_AARCH64)
		return len - at >= sizeof(arm64) && !memcmp(code + at, arm64, sizeof(arm64));
	return nps_probe_point__class(machine, code, len, at) == NPS_PROBE_NOP;
}

/* Branches of a function. */
struct branches {
	size_t len; /* of the function */
	size_t point; /* no branch may lead after the first instruction, up to here */
	bool into; /* one does */
	bool indirect; /* one has an unknown target */
	int64_t outside[MAX_PARTS]; /* targets outside of the function, from its start */
	unsigned n;
	bool too_many;
};

static void branch_leads_to(struct branches *b, int64_t to)
{
	if (to > 0 && to <= (int64_t)b->point)
		b->into = true;
	if (to >= 0 && to < (int64_t)b->len)
		return;
	for (unsigned i = 0; i < b->n; i++)
		if (to >= b->outside[i] && to < b->outside[i] + PART / 2)
			return;
	if (b->n == MAX_PARTS)
		b->too_many = true;
	else
		b->outside[b->n++] = to;
}

static int32_t rel32(const uint8_t *b)
{
	return (int32_t)(b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
}

/* Decodes an x86-64 branch in the `n` bytes of an instruction that ends at END. */
static void x86_branch(struct branches *br, const uint8_t *b, size_t n, int64_t end)
{
	/* prefixes: bnd, notrack, hints, rex */
	while (n > 1 && (*b == 0xf2 || *b == 0xf3 || *b == 0x2e || *b == 0x3e || (*b & 0xf0) == 0x40)) {
		b++;
		n--;
	}
	if (n == 2 && (*b == 0xeb || (*b & 0xf0) == 0x70 || (*b & 0xfc) == 0xe0))
		branch_leads_to(br, end + (int8_t)b[1]);
	else if (n == 5 && *b == 0xe9)
		branch_leads_to(br, end + rel32(b + 1));
	else if (n == 6 && *b == 0x0f && (b[1] & 0xf0) == 0x80)
		branch_leads_to(br, end + rel32(b + 2));
	else if (n == 5 && *b == 0xe8 && end + rel32(b + 1) > 0 && end + rel32(b + 1) <= (int64_t)br->point)
		br->into = true;
	/* Through a register or a table; through a word of the file it is a tail call. */
	else if (n >= 2 && *b == 0xff && ((b[1] >> 3 & 7) == 4 || (b[1] >> 3 & 7) == 5) && b[1] != 0x25)
		br->indirect = true;
}

static bool x86_branches(csh cs, const uint8_t *code, struct branches *br)
{
	const uint8_t *at = code;
	size_t left = br->len;
	uint64_t address = 0;
	cs_insn *in;

	cs_option(cs, CS_OPT_DETAIL, CS_OPT_OFF);
	in = cs_malloc(cs);
	while (in && left && cs_disasm_iter(cs, &at, &left, &address, in))
		x86_branch(br, in->bytes, in->size, (int64_t)address);
	if (in)
		cs_free(in, 1);
	return in && !left; /* the undecoded rest may contain one */
}

static void arm64_branch(struct branches *br, const uint8_t *code, int64_t at)
{
	uint32_t op = (uint32_t)rel32(code);
	int64_t to;

	if ((op & 0x7c000000) == 0x14000000) { /* b, bl */
		to = at + (int64_t)((int32_t)(op << 6) >> 6) * 4;
		if (!(op >> 31) || (to > 0 && to <= (int64_t)br->point))
			branch_leads_to(br, to);
	} else if ((op & 0x7e000000) == 0x34000000 || (op & 0xfe000000) == 0x54000000) { /* cbz, b.cond */
		branch_leads_to(br, at + (int64_t)((int32_t)(op << 8) >> 13) * 4);
	} else if ((op & 0x7e000000) == 0x36000000) { /* tbz */
		branch_leads_to(br, at + (int64_t)((int32_t)(op << 13) >> 18) * 4);
	} else if ((op & 0xfefff000) == 0xd61f0000) { /* br and its variants, not blr */
		br->indirect = true;
	}
}

static bool arm64_branches(const uint8_t *code, struct branches *br)
{
	for (size_t at = 0; at + 4 <= br->len; at += 4)
		arm64_branch(br, code + at, (int64_t)at);
	return !(br->len % 4);
}

/*
 * Does any code of a part that the function jumps to, BASE bytes from
 * its start, lead back into the skipped instructions?
 */
static bool part_leads_back(int machine, const uint8_t *code, size_t n, int64_t base, size_t point)
{
	struct branches br = { .point = point };

	if (machine == EM_AARCH64) {
		for (size_t at = 0; at + 4 <= n; at += 4, br.n = 0)
			arm64_branch(&br, code + at, base + (int64_t)at);
		return br.into;
	}
	/* Instruction boundaries are unknown, so each byte is tried as a start. */
	for (size_t at = 0; at < n && !br.into; at++, br.n = 0) {
		static const uint8_t sizes[] = { 2, 5, 6 };

		for (int i = 0; i < 3; i++)
			if (n - at >= sizes[i])
				x86_branch(&br, code + at, sizes[i], base + (int64_t)at + sizes[i]);
	}
	return br.into;
}

static void pad_is_at(int64_t at, void *arg)
{
	branch_leads_to(arg, at);
}

/*
 * Parts of the function that the compiler moved elsewhere (.cold) can jump back to where they were entered.
 */
static bool parts_lead_back(int machine, const struct branches *br, const struct nps_probe_need *need)
{
	uint8_t *code;
	bool back = false;

	if (!br->n)
		return false;
	code = need->read && !br->too_many ? malloc(PART) : NULL;
	for (unsigned i = 0; code && !back && i < br->n; i++) {
		int64_t from = br->outside[i] - PART_BEFORE;
		int n = need->read(need->ctx, from, code, PART);

		back = n < PART_BEFORE || part_leads_back(machine, code, (size_t)n, from, br->point);
	}
	free(code);
	return back || !code;
}

static bool is_push(int machine, const uint8_t *code, size_t at)
{
	return machine == EM_X86_64 && (code[at] == 0x41 || (code[at] & 0xf8) == 0x50);
}

/*
 * Is POINT reached once, whenever the function is entered? No branch may lead to it, or to an instruction
 * that was skipped before it, or a probe there would count loop turns. A push cannot be in a loop without
 * the matching pop, so unknown branches are harmless for it.
 */
static bool reached_once(csh cs, int machine, const uint8_t *code, size_t len, size_t point,
			 const struct nps_probe_need *need, const char **why)
{
	struct branches br = { .len = len, .point = point };
	bool push = is_push(machine, code, point);

	if (!(machine == EM_X86_64 ? x86_branches(cs, code, &br) : arm64_branches(code, &br)))
		*why = "its code cannot be read to its end";
	else if (br.into)
		*why = "a loop leads back to where it would be probed";
	else if (!push && br.indirect)
		*why = "an indirect jump may lead back to where it would be probed";
	else if (!push && need->landing_pads && need->landing_pads(need->ctx, pad_is_at, &br) < 0)
		*why = "where exceptions go on in it cannot be read";
	else if (!push && br.into)
		*why = "an exception may lead back to where it would be probed";
	else if (!push && parts_lead_back(machine, &br, need))
		*why = "code outside it may lead back to where it would be probed";
	else
		return true;
	return false;
}

static bool reads_stack(int machine, const struct nps_probe_need *need)
{
	return need->arguments >> (machine == EM_X86_64 ? 6 : 8);
}

static bool memory_matters(int machine, const struct nps_probe_need *need)
{
	return need->memory || reads_stack(machine, need);
}

/* Reason why a probe may not be after the instructions in B. */
static const char *what_is_overwritten(const struct nps_block *b, int machine,
				       const struct nps_probe_need *need)
{
	if (b->overwritten & need->arguments)
		return "an argument is overwritten before the first instruction that is emulated";
	if (b->return_moved && need->returns)
		return "the return address is signed before the first instruction that is emulated";
	if (b->sp_moved && need->returns)
		return "the stack pointer moves before the first instruction that is emulated, and its "
		       "return is probed";
	if (b->sp_moved && reads_stack(machine, need))
		return "the stack pointer moves before the first instruction that is emulated, and arguments "
		       "lie on the stack";
	return NULL;
}

/*
 * The first instruction that the kernel emulates, else the first nop,
 * which newer kernels emulate; 0 with *WHY: none.
 */
static size_t find_point(struct nps_block *b, int machine, const uint8_t *code, size_t len,
			 const struct nps_probe_need *need, const char **why)
{
	size_t nop = 0;

	*why = "no instruction of its first block is emulated";
	while (b->at < len && b->at < MAX_SKIP) {
		const char *overwritten = what_is_overwritten(b, machine, need);

		if (overwritten) {
			*why = overwritten;
			break;
		}
		if (is_emulated(machine, code + b->at, len - b->at))
			return b->at;
		if (!nop && is_nop(machine, code, len, b->at))
			nop = b->at;
		if (!(machine == EM_X86_64 ? nps_block_x86__step(b, code, len)
					   : nps_block_arm64__step(b, code, len)))
			break;
	}
	return nop;
}

static size_t x86_point(const uint8_t *code, size_t len, const struct nps_probe_need *need, const char **why)
{
	struct nps_block b = { .memory_matters = memory_matters(EM_X86_64, need) };
	size_t point = 0;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &b.cs))
		return 0;
	cs_option(b.cs, CS_OPT_DETAIL, CS_OPT_ON);
	b.in = cs_malloc(b.cs);
	if (b.in) {
		point = find_point(&b, EM_X86_64, code, len, need, why);
		cs_free(b.in, 1);
	}
	if (point && !reached_once(b.cs, EM_X86_64, code, len, point, need, why))
		point = 0;
	cs_close(&b.cs);
	return point;
}

static size_t arm64_point(const uint8_t *code, size_t len, const struct nps_probe_need *need,
			  const char **why)
{
	struct nps_block b = { .memory_matters = memory_matters(EM_AARCH64, need) };
	size_t point = find_point(&b, EM_AARCH64, code, len, need, why);

	return point && reached_once(0, EM_AARCH64, code, len, point, need, why) ? point : 0;
}

size_t nps_probe_point__explain(int machine, const uint8_t *code, size_t len,
				const struct nps_probe_need *need, const char **why)
{
	*why = "not a processor that is known";
	if (machine == EM_X86_64)
		return x86_point(code, len, need, why);
	return machine == EM_AARCH64 ? arm64_point(code, len, need, why) : 0;
}

size_t nps_probe_point(int machine, const uint8_t *code, size_t len, const struct nps_probe_need *need)
{
	const char *why;

	return nps_probe_point__explain(machine, code, len, need, &why);
}

bool nps_probe_class__is_stepped(enum nps_probe_class class, uint32_t kernel)
{
	return class == NPS_PROBE_STEPPED || (class == NPS_PROBE_NOP && kernel < KERNEL_VERSION(6, 18, 0));
}

const char *nps_probe_class__name(enum nps_probe_class class)
{
	static const char *const names[] = { [NPS_PROBE_EMULATED] = "emulated",
					     [NPS_PROBE_NOP] = "nop",
					     [NPS_PROBE_STEPPED] = "single-stepped" };

	return names[class];
}
