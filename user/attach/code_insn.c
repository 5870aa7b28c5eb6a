/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capstone decides the length of an x86-64 instruction; its kind is decoded by hand, without capstone's
 * details, which take most of its time.
 */
#include "attach/code_insn.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>

int nps_insn_decoder__init(struct nps_insn_decoder *d, int machine)
{
	*d = (struct nps_insn_decoder){ .machine = machine };
	if (machine == EM_AARCH64)
		return 0;
	if (machine != EM_X86_64)
		return -ENOTSUP;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d->cs))
		return -ENOMEM;
	cs_option(d->cs, CS_OPT_DETAIL, CS_OPT_OFF);
	d->in = cs_malloc(d->cs);
	if (d->in)
		return 0;
	cs_close(&d->cs);
	return -ENOMEM;
}

void nps_insn_decoder__free(struct nps_insn_decoder *d)
{
	if (!d->in)
		return;
	cs_free(d->in, 1);
	cs_close(&d->cs);
	d->in = NULL;
}

/* Prefixes of an x86-64 instruction. */
struct prefixes {
	size_t n;
	bool size16; /* 0x66 */
	bool other;
	bool wide; /* REX.W */
};

/* Those that only change operands; 0x66, 0xf2 and 0xf3 are not among them. */
static bool is_other_prefix(uint8_t c)
{
	return c == 0x2e || c == 0x36 || c == 0x3e || c == 0x26 || c == 0x64 || c == 0x65 || c == 0x67 ||
	       c == 0xf0;
}

static bool is_rex(uint8_t c)
{
	return (c & 0xf0) == 0x40;
}

static struct prefixes read_prefixes(const uint8_t *b, size_t n)
{
	struct prefixes p = { 0 };

	for (; p.n < n; p.n++) {
		if (b[p.n] == 0x66)
			p.size16 = true;
		else if (is_other_prefix(b[p.n]))
			p.other = true;
		else if (b[p.n] != 0xf2 && b[p.n] != 0xf3)
			break;
	}
	if (p.n < n && is_rex(b[p.n]))
		p.wide = b[p.n++] & 8;
	return p;
}

/* Can an opcode begin with C? After REX a prefix cannot follow. */
static bool is_opcode(uint8_t c)
{
	return !is_rex(c) && !is_other_prefix(c) && c != 0x66 && c != 0xf2 && c != 0xf3;
}

static int32_t read_rel32(const uint8_t *b)
{
	return (int32_t)(b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
}

static enum nps_insn_kind group5_kind(const uint8_t *b, size_t n)
{
	uint8_t modrm = n > 1 ? b[1] : 0xff;

	switch (modrm >> 3 & 7) {
	case 2:
		return NPS_INSN_CALL_INDIRECT;
	case 4:
		return modrm == 0x25 ? NPS_INSN_TAIL_CALL : NPS_INSN_JUMP_INDIRECT;
	case 3: /* far */
	case 5:
	case 7:
		return NPS_INSN_UNKNOWN;
	default:
		return NPS_INSN_PLAIN;
	}
}

/* Kind of the two-byte opcode 0x0f B[1]. */
static enum nps_insn_kind kind_of_0f(const uint8_t *b, size_t n)
{
	uint8_t c = n > 1 ? b[1] : 0;

	if (c == 0x0b || c == 0xb9 || c == 0xff) /* ud2, ud1, ud0 */
		return NPS_INSN_TRAP;
	if (c == 0x07 || c == 0x35 || c == 0xaa) /* sysret, sysexit, rsm */
		return NPS_INSN_UNKNOWN;
	return (c & 0xf0) == 0x80 ? NPS_INSN_BRANCH : NPS_INSN_PLAIN;
}

/* Kind by the opcode, which begins at B. */
static enum nps_insn_kind x86_kind(const uint8_t *b, size_t n)
{
	if ((*b & 0xf0) == 0x70 || (*b & 0xfc) == 0xe0) /* jcc; loop, jrcxz */
		return NPS_INSN_BRANCH;
	switch (*b) {
	case 0x0f:
		return kind_of_0f(b, n);
	case 0xe8:
		return NPS_INSN_CALL;
	case 0xe9:
	case 0xeb:
		return NPS_INSN_JUMP;
	case 0xc3:
		return NPS_INSN_RETURN;
	case 0xf4: /* hlt */
		return NPS_INSN_TRAP;
	case 0xff:
		return group5_kind(b, n);
	case 0xc2: /* ret that pops arguments; far and from interrupts */
	case 0xca:
	case 0xcb:
	case 0xcf:
		return NPS_INSN_UNKNOWN;
	case 0xc7: /* xbegin, which continues elsewhere when a transaction fails */
		return n > 1 && b[1] == 0xf8 ? NPS_INSN_UNKNOWN : NPS_INSN_PLAIN;
	default:
		return NPS_INSN_PLAIN;
	}
}

/* Bytes of the displacement at the end of a direct branch with the opcode at B; 0: it has none. */
static size_t displacement(const uint8_t *b, enum nps_insn_kind kind)
{
	if (kind != NPS_INSN_CALL && kind != NPS_INSN_JUMP && kind != NPS_INSN_BRANCH)
		return 0;
	return *b == 0xe8 || *b == 0xe9 || *b == 0x0f ? 4 : 1;
}

static struct nps_insn x86_decode(const struct nps_insn_decoder *d, const uint8_t *code, size_t len,
				  uint64_t address)
{
	struct nps_insn insn = { .address = address, .kind = NPS_INSN_UNKNOWN };
	const uint8_t *at = code, *opcode;
	struct prefixes p;
	uint64_t next = address;
	size_t n, width;

	if (!cs_disasm_iter(d->cs, &at, &len, &next, d->in))
		return insn;
	n = (size_t)(at - code);
	p = read_prefixes(code, n);
	if (p.n >= n || !is_opcode(code[p.n]))
		return insn;
	opcode = code + p.n;
	insn.size = (uint8_t)n;
	insn.kind = (uint8_t)x86_kind(opcode, n - p.n);
	width = displacement(opcode, insn.kind);
	/* Processors differ in what 0x66 does to a branch. */
	if (width ? n != p.n + (*opcode == 0x0f ? 2 : 1) + width || (p.size16 && !p.wide)
		  : insn.kind == NPS_INSN_RETURN && (p.size16 || p.other))
		insn.kind = NPS_INSN_UNKNOWN;
	else if (width)
		insn.target = next + (uint64_t)(int64_t)(width == 4 ? read_rel32(at - 4) : (int8_t)at[-1]);
	return insn;
}

/* The signed field of BITS bits from LOW on, in units of 4 bytes. */
static uint64_t arm64_offset(uint32_t op, int low, int bits)
{
	return (uint64_t)((int64_t)((uint64_t)op << (64 - low - bits)) >> (64 - bits)) * 4;
}

static struct nps_insn arm64_decode(const uint8_t *code, size_t len, uint64_t address)
{
	struct nps_insn insn = { .address = address, .size = 4, .kind = NPS_INSN_PLAIN };
	uint32_t op;

	if (len < 4 || address % 4) {
		insn.kind = NPS_INSN_UNKNOWN;
		return insn;
	}
	op = (uint32_t)read_rel32(code);
	if ((op & 0x7c000000) == 0x14000000) { /* b, bl */
		insn.kind = op >> 31 ? NPS_INSN_CALL : NPS_INSN_JUMP;
		insn.target = address + arm64_offset(op, 0, 26);
	} else if ((op & 0x7e000000) == 0x34000000 || (op & 0xff000000) == 0x54000000) { /* cbz; b.cond, bc */
		insn.kind = NPS_INSN_BRANCH;
		insn.target = address + arm64_offset(op, 5, 19);
	} else if ((op & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		insn.kind = NPS_INSN_BRANCH;
		insn.target = address + arm64_offset(op, 5, 14);
	} else if (op == 0xd65f03c0) { /* ret */
		insn.kind = NPS_INSN_RETURN;
	} else if ((op & 0xfffffc1f) == 0xd63f0000 || (op & 0xfefff800) == 0xd63f0800) { /* blr, blraa */
		insn.kind = NPS_INSN_CALL_INDIRECT;
	} else if ((op & 0xfffffc1f) == 0xd61f0000 || (op & 0xfefff800) == 0xd61f0800) { /* br, braa */
		insn.kind = NPS_INSN_JUMP_INDIRECT;
	} else if ((op & 0xffe0001f) == 0xd4200000) { /* brk, as a compiler ends unreachable code */
		insn.kind = NPS_INSN_TRAP;
	} else if ((op & 0xfe000000) == 0xd6000000 || (op & 0x7e000000) == 0x74000000 || !(op & 0x1c000000)) {
		/* retaa, eret, ret of another register; compare and branch of Armv9.6; reserved encodings */
		insn.kind = NPS_INSN_UNKNOWN;
	}
	return insn;
}

struct nps_insn nps_insn_decoder__decode(const struct nps_insn_decoder *d, const uint8_t *code, size_t len,
					 uint64_t address)
{
	return d->machine == EM_X86_64 ? x86_decode(d, code, len, address) : arm64_decode(code, len, address);
}
