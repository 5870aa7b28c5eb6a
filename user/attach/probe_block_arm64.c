/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoded by hand: few classes of instructions begin functions, and only
 * the registers that they write matter.
 */
#include "attach/probe_block.h"

#define FP 29
#define LR 30
#define SP 31
#define MAX_FRAME (1 << 30)

static unsigned field(uint32_t op, int low, int bits)
{
	return op >> low & ((1U << bits) - 1);
}

static int64_t signed_field(uint32_t op, int low, int bits)
{
	int64_t v = field(op, low, bits);

	return v >> (bits - 1) ? v - (1LL << bits) : v;
}

/* Register N is written, where 31 is the zero register. */
static void write_register(struct nps_block *b, unsigned n)
{
	if (n < 8)
		b->overwritten |= 1U << n;
	else if (n == FP)
		b->has_frame = false;
	else if (n == LR)
		b->return_moved = true;
}

/*
 * Hints have no effect beyond that in their name; of those that sign addresses, only the ones for the link
 * register are accepted.
 */
static bool system_instruction(struct nps_block *b, uint32_t op)
{
	if (op == 0xd503201f || (op & 0xffffff3f) == 0xd503241f) /* nop, bti */
		return true;
	if (op == 0xd503233f || op == 0xd503237f) { /* paciasp, pacibsp */
		b->return_moved = true;
		return true;
	}
	if ((op & 0xfff00000) == 0xd5300000) { /* mrs */
		write_register(b, field(op, 0, 5));
		return true;
	}
	return false;
}

/* Moves the stack pointer down, or back up to that at the entry at most. */
static bool arm64_move_stack(struct nps_block *b, int64_t down)
{
	if (b->depth + down < 0 || b->depth + down > MAX_FRAME)
		return false;
	b->depth += down;
	b->sp_moved = true;
	return true;
}

/* add, sub with an immediate: 31 is the stack pointer unless flags are set. */
static bool add_immediate(struct nps_block *b, uint32_t op)
{
	unsigned rd = field(op, 0, 5), rn = field(op, 5, 5);
	int64_t value = (int64_t)field(op, 10, 12) << (op & 1U << 22 ? 12 : 0);
	bool subtracts = op & 1U << 30, flags = op & 1U << 29, wide = op & 1U << 31;

	if (rd == SP && !flags) {
		return rn == SP && wide && arm64_move_stack(b, subtracts ? value : -value);
	}
	write_register(b, rd);
	if (rd == FP && rn == SP && !subtracts && wide && !flags) { /* mov x29, sp */
		b->has_frame = true;
		b->frame = b->depth - value;
	}
	return true;
}

static bool immediate_instruction(struct nps_block *b, uint32_t op)
{
	switch (field(op, 23, 3)) {
	case 2: /* add, sub */
		return add_immediate(b, op);
	case 4: /* and, orr, eor, ands: 31 is the stack pointer except for the last */
		if (field(op, 0, 5) == SP && field(op, 29, 2) != 3)
			return false;
		/* fall through */
	case 5: /* movn, movz, movk */
	case 6: /* bitfields */
	case 7: /* extr */
		write_register(b, field(op, 0, 5));
		return true;
	}
	return false; /* relative addresses, which are simulated; instructions with tags */
}

enum index { OFFSET, PRE_INDEX, POST_INDEX };

/*
 * May a store of SIZE bytes at register RN plus OFFSET be skipped? Only in the function's own frame, after
 * the stack pointer may have moved down to it.
 */
static bool store(struct nps_block *b, unsigned rn, int64_t offset, int64_t size, enum index index)
{
	if (index == POST_INDEX || (index == PRE_INDEX && rn != SP))
		return false;
	if (index == PRE_INDEX) {
		if (offset > 0 || !arm64_move_stack(b, -offset))
			return false;
		offset = 0;
	}
	if (!b->memory_matters)
		return true;
	if (rn == SP)
		return offset + size <= b->depth;
	return rn == FP && b->has_frame && offset + size <= b->frame;
}

/* For a load: it may only move the stack pointer, upwards. */
static bool load_moves(struct nps_block *b, unsigned rn, int64_t offset, enum index index)
{
	return index == OFFSET || (index == POST_INDEX && rn == SP && arm64_move_stack(b, -offset));
}

/* stp, ldp */
static bool pair(struct nps_block *b, uint32_t op)
{
	static const enum index indexes[] = { OFFSET, POST_INDEX, OFFSET, PRE_INDEX };
	enum index index = indexes[field(op, 23, 2)];
	bool vector = op & 1U << 26, load = op & 1U << 22;
	unsigned opc = field(op, 30, 2);
	int scale = vector ? 2 + (int)opc : 2 + (int)(opc >> 1);
	int64_t offset = signed_field(op, 15, 7) * (1 << scale);

	if (opc == 3 || (!vector && opc == 1 && !load))
		return false;
	if (!load)
		return store(b, field(op, 5, 5), offset, 2LL << scale, index);
	if (!load_moves(b, field(op, 5, 5), offset, index))
		return false;
	if (!vector) {
		write_register(b, field(op, 0, 5));
		write_register(b, field(op, 10, 5));
	}
	return true;
}

/* str, ldr and their narrower variants */
static bool single(struct nps_block *b, uint32_t op)
{
	bool vector = op & 1U << 26, scaled = op & 1U << 24;
	unsigned opc = field(op, 22, 2), size = field(op, 30, 2), form = field(op, 10, 2);
	int scale = vector && opc >> 1 ? 4 : (int)size;
	bool load = vector ? opc & 1 : opc != 0;
	enum index index = OFFSET;
	int64_t offset;

	if (scaled) {
		offset = (int64_t)field(op, 10, 12) * (1 << scale);
	} else if (!(op & 1U << 21)) {
		offset = signed_field(op, 12, 9);
		if (form == 2)
			return false; /* unprivileged */
		index = form == 1 ? POST_INDEX : form == 3 ? PRE_INDEX : OFFSET;
	} else {
		if (form != 2 || (!load && b->memory_matters))
			return false; /* atomics; a store with a register as offset may be anywhere */
		if (!load)
			return true;
		offset = 0;
	}
	if (!load)
		return store(b, field(op, 5, 5), offset, 1LL << scale, index);
	if (!load_moves(b, field(op, 5, 5), offset, index))
		return false;
	if (!vector && !(size == 3 && opc == 2)) /* the last is prfm */
		write_register(b, field(op, 0, 5));
	return true;
}

static bool memory_instruction(struct nps_block *b, uint32_t op)
{
	switch (op & 0x3a000000) {
	case 0x28000000:
		return pair(b, op);
	case 0x38000000:
		return single(b, op);
	case 0x18000000: /* a literal; other encodings nearby are of other classes */
		if (op & 0x01000000)
			return false;
		if (!(op & 1U << 26) && field(op, 30, 2) != 3)
			write_register(b, field(op, 0, 5));
		return true;
	}
	return false;
}

bool nps_block_arm64__step(struct nps_block *b, const uint8_t *code, size_t len)
{
	struct nps_block after = *b;
	const uint8_t *p = code + b->at;
	uint32_t op;
	bool fine = false;

	if (b->at > len || len - b->at < sizeof(op))
		return false;
	op = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	switch (field(op, 25, 4)) {
	case 8:
	case 9:
		fine = immediate_instruction(&after, op);
		break;
	case 10:
	case 11:
		fine = system_instruction(&after, op);
		break;
	case 5:
	case 13: /* with registers: 31 is the zero register, except in extended forms without flags */
		fine = (op & 0x1f200000) != 0x0b200000 || field(op, 0, 5) != SP;
		write_register(&after, field(op, 0, 5));
		break;
	case 7:
	case 15: /* floating point and vectors: some write a general register, so all count as writing it */
		fine = true;
		write_register(&after, field(op, 0, 5));
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		fine = memory_instruction(&after, op);
		break;
	}
	if (!fine)
		return false;
	after.at += sizeof(op);
	*b = after;
	return true;
}
