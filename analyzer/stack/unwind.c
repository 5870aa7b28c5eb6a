/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack/unwind.h"

#include "base/util.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define REGS_X86 17
#define DEPTH 64 /* values on the stack of an expression */
#define STEPS 512 /* operations of an expression: it can jump */
#define LINK_REGISTER 30 /* of arm64 */
#define USER_BITS 48 /* of an address; above them arm64 signs return addresses */

/* Registers by their numbers of the two machines. */
struct machine {
	uint8_t fp, sp, pc;
	bool x86;
};

static struct machine machine_of(uint32_t nregs)
{
	return nregs == REGS_X86 ? (struct machine){ 6, 7, 16, true } : (struct machine){ 29, 31, 32, false };
}

static bool expr_load(const struct nps_expr *e, uint64_t at, uint64_t *value)
{
	uint64_t offset = at - e->stack_at;

	if (at < e->stack_at || offset > e->stack_len || e->stack_len - offset < sizeof(*value))
		return false;
	memcpy(value, e->stack + offset, sizeof(*value));
	return true;
}

/* --- expressions ---------------------------------------------------------------------------------- */

struct stack {
	uint64_t v[DEPTH];
	size_t n;
};

static bool expr_push(struct stack *s, uint64_t v)
{
	if (s->n == DEPTH)
		return false;
	s->v[s->n++] = v;
	return true;
}

static bool reg_plus(const struct nps_expr *e, struct stack *s, uint64_t reg, uint64_t plus)
{
	return reg < e->nregs && expr_push(s, e->regs[reg] + plus);
}

/* Of two values; the upper one was pushed last. */
static bool binary(uint8_t atom, uint64_t low, uint64_t top, uint64_t *out)
{
	switch (atom) {
	case DW_OP_plus:
		*out = low + top;
		return true;
	case DW_OP_minus:
		*out = low - top;
		return true;
	case DW_OP_mul:
		*out = low * top;
		return true;
	case DW_OP_and:
		*out = low & top;
		return true;
	case DW_OP_or:
		*out = low | top;
		return true;
	case DW_OP_xor:
		*out = low ^ top;
		return true;
	case DW_OP_shl:
		*out = top < 64 ? low << top : 0;
		return true;
	case DW_OP_shr:
		*out = top < 64 ? low >> top : 0;
		return true;
	case DW_OP_shra:
		top = top < 64 ? top : 63;
		*out = low >> 63 ? ~(~low >> top) : low >> top;
		return true;
	case DW_OP_eq:
		*out = low == top;
		return true;
	case DW_OP_ne:
		*out = low != top;
		return true;
	case DW_OP_ge:
		*out = (int64_t)low >= (int64_t)top;
		return true;
	case DW_OP_gt:
		*out = (int64_t)low > (int64_t)top;
		return true;
	case DW_OP_le:
		*out = (int64_t)low <= (int64_t)top;
		return true;
	case DW_OP_lt:
		*out = (int64_t)low < (int64_t)top;
		return true;
	default:
		return false;
	}
}

static bool unary(const struct nps_expr *e, const Dwarf_Op *op, uint64_t *top)
{
	switch (op->atom) {
	case DW_OP_deref:
		return expr_load(e, *top, top);
	case DW_OP_plus_uconst:
		*top += op->number;
		return true;
	case DW_OP_neg:
		*top = -*top;
		return true;
	case DW_OP_not:
		*top = ~*top;
		return true;
	default:
		return false;
	}
}

static bool one_op(const struct nps_expr *e, const Dwarf_Op *op, struct stack *s)
{
	uint8_t atom = op->atom;
	uint64_t v;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return reg_plus(e, s, atom - DW_OP_breg0, op->number);
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return expr_push(s, atom - DW_OP_lit0);
	switch (atom) {
	case DW_OP_nop:
	case DW_OP_stack_value:
		return true;
	case DW_OP_call_frame_cfa:
		return expr_push(s, e->cfa);
	case DW_OP_bregx:
		return reg_plus(e, s, op->number, op->number2);
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return expr_push(s, op->number);
	case DW_OP_dup:
		return s->n && expr_push(s, s->v[s->n - 1]);
	case DW_OP_over:
		return s->n > 1 && expr_push(s, s->v[s->n - 2]);
	case DW_OP_drop:
		return s->n && s->n--;
	case DW_OP_swap:
		if (s->n < 2)
			return false;
		v = s->v[s->n - 1];
		s->v[s->n - 1] = s->v[s->n - 2];
		s->v[s->n - 2] = v;
		return true;
	default:
		break;
	}
	if (s->n && unary(e, op, &s->v[s->n - 1]))
		return true;
	if (s->n < 2 || !binary(atom, s->v[s->n - 2], s->v[s->n - 1], &s->v[s->n - 2]))
		return false;
	s->n--;
	return true;
}

/* Index of the operation that a jump leads to; NOPS: the end. Jumps count bytes from the next operation. */
static size_t jump(const Dwarf_Op *ops, size_t nops, size_t i)
{
	uint64_t to = ops[i].offset + 3 + (uint64_t)(int64_t)(int16_t)ops[i].number;

	for (size_t k = 0; k < nops; k++)
		if (ops[k].offset == to)
			return k;
	return nops;
}

bool nps_expr__eval(const struct nps_expr *e, const Dwarf_Op *ops, size_t nops, uint64_t *value)
{
	struct stack s = { .n = 0 };
	size_t i = 0;

	for (int steps = 0; i < nops; steps++) {
		if (steps == STEPS)
			return false;
		if (ops[i].atom == DW_OP_skip) {
			i = jump(ops, nops, i);
			continue;
		}
		if (ops[i].atom == DW_OP_bra) {
			if (!s.n)
				return false;
			i = s.v[--s.n] ? jump(ops, nops, i) : i + 1;
			continue;
		}
		if (!one_op(e, &ops[i++], &s))
			return false;
	}
	if (!s.n)
		return false;
	*value = s.v[s.n - 1];
	return true;
}

/* --- steps ---------------------------------------------------------------------------------------- */

/* A register as the caller had it. False: its value is not known. */
static bool caller_reg(const struct nps_expr *e, Dwarf_Frame *frame, uint32_t reg, uint64_t *value)
{
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, (int)reg, mem, &ops, &n) || (!n && ops))
		return false;
	if (!n) { /* as it is */
		*value = e->regs[reg];
		return true;
	}
	if (n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		if ((uint32_t)ops[0].atom - DW_OP_reg0 >= e->nregs)
			return false;
		*value = e->regs[ops[0].atom - DW_OP_reg0];
		return true;
	}
	if (n == 1 && ops[0].atom == DW_OP_regx) {
		if (ops[0].number >= e->nregs)
			return false;
		*value = e->regs[ops[0].number];
		return true;
	}
	if (!nps_expr__eval(e, ops, n, value))
		return false;
	return ops[n - 1].atom == DW_OP_stack_value || expr_load(e, *value, value);
}

enum step { STEPPED, STUCK, BEGUN }; /* BEGUN: there is no caller */

static enum nps_unwind_code code_at(const struct nps_unwind *u, uint64_t pc)
{
	enum nps_unwind_code code = NPS_UNWIND_NOWHERE;
	uint64_t vaddr;

	u->find(u->ctx, pc, &vaddr, &code);
	return code;
}

/*
 * The call whose return is probed and whose stack pointer at its entry was from LOW to HIGH: the one with
 * the lowest, or with the highest stack pointer. Of calls with the same stack pointer the first, innermost
 * one still exists; the others were left by longjmp.
 */
static const struct nps_return *return_within(const struct nps_unwind *u, uint64_t low, uint64_t high,
					      bool highest)
{
	const struct nps_return *best = NULL;

	for (size_t i = 0; i < u->nreturns; i++) {
		const struct nps_return *r = &u->returns[i];

		if (r->stack < low || r->stack > high)
			continue;
		if (!best || (highest ? r->stack > best->stack : r->stack < best->stack))
			best = r;
	}
	return best;
}

/* If a step came to the trampoline: goes on from where the call returns to. Bounds as of return_within(). */
static void put_back(const struct nps_unwind *u, uint64_t *pc, uint64_t low, uint64_t high, bool highest)
{
	const struct nps_return *r;

	if (!u->nreturns || code_at(u, *pc) != NPS_UNWIND_RETURN)
		return;
	r = return_within(u, low, high, highest);
	if (r)
		*pc = r->address;
}

/* CALLING: leaves a function that has called another one, which *REGS come from. */
static enum step step_cfi(const struct nps_unwind *u, struct nps_expr *e, Dwarf_Frame *frame, uint64_t *regs,
			  bool calling, bool *signal)
{
	struct machine m = machine_of(e->nregs);
	uint64_t next[NPS_UNWIND_REGS], sp = regs[m.sp], ra;
	Dwarf_Addr start, end;
	int ra_reg = dwarf_frame_info(frame, &start, &end, signal);
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (ra_reg < 0 || (uint32_t)ra_reg >= e->nregs || dwarf_frame_cfa(frame, &ops, &n) || !n ||
	    !nps_expr__eval(e, ops, n, &e->cfa))
		return STUCK;
	for (uint32_t i = 0; i < e->nregs; i++)
		if (!caller_reg(e, frame, i, &next[i]))
			next[i] = 0;
	if (dwarf_frame_register(frame, ra_reg, mem, &ops, &n))
		return STUCK;
	if (!n && ops)
		return BEGUN;
	if (!caller_reg(e, frame, (uint32_t)ra_reg, &ra))
		return STUCK;
	if (!m.x86)
		ra &= (1ULL << USER_BITS) - 1;
	if (!ra)
		return BEGUN;
	if (!*signal) {
		next[m.sp] = e->cfa;
		if (e->cfa < sp || (m.x86 && e->cfa == sp))
			return STUCK; /* a stack only shrinks on the way out */
	}
	memcpy(regs, next, e->nregs * sizeof(*regs));
	regs[m.pc] = ra;
	if (*signal)
		return STEPPED;
	if (m.x86) /* the return address stands right below */
		put_back(u, &regs[m.pc], e->cfa - 8, e->cfa - 8, true);
	else /* a probe can be behind the instruction that makes the frame; at SP is what this one called */
		put_back(u, &regs[m.pc], sp + calling, e->cfa, true);
	return STEPPED;
}

/* Code without unwind information, a JIT's or an assembler's, is assumed to have a frame pointer. */
static enum step step_fp(const struct nps_unwind *u, const struct nps_expr *e, uint64_t *regs)
{
	struct machine m = machine_of(e->nregs);
	uint64_t fp = regs[m.fp], saved, ra;

	if (fp < regs[m.sp] || (fp & 7) || !expr_load(e, fp, &saved) || !expr_load(e, fp + 8, &ra))
		return STUCK;
	if (!ra)
		return BEGUN;
	regs[m.fp] = saved;
	regs[m.sp] = fp + 16;
	regs[m.pc] = m.x86 ? ra : ra & ((1ULL << USER_BITS) - 1);
	if (m.x86)
		put_back(u, &regs[m.pc], fp + 8, fp + 8, true);
	else /* its frame ends anywhere up to that of its caller */
		put_back(u, &regs[m.pc], fp + 16, saved > fp ? saved : UINT64_MAX, false);
	return STEPPED;
}

#define PROBE_WORDS 5

/* In a trampoline before it calls the kernel: up to three registers were pushed over the return address. */
static enum step step_trampoline(const struct nps_unwind *u, struct machine m, uint64_t *regs)
{
	uint64_t sp = regs[m.sp];
	const struct nps_return *r = m.x86 ? return_within(u, sp - 8, sp + 16, false)
					   : return_within(u, 0, sp, true);

	if (!r)
		return STUCK;
	regs[m.pc] = r->address;
	if (m.x86)
		regs[m.sp] = r->stack + 8;
	return STEPPED;
}

/* arm64: the function at the probe has not saved its return address yet. */
static enum step step_link_register(const struct nps_unwind *u, struct machine m, uint64_t *regs)
{
	uint64_t pc = regs[LINK_REGISTER] & ((1ULL << USER_BITS) - 1);

	put_back(u, &pc, regs[m.sp], UINT64_MAX, false);
	if (code_at(u, pc - 1) != NPS_UNWIND_CODE)
		return STUCK;
	regs[m.pc] = pc;
	return STEPPED;
}

/*
 * A probe is at the beginning of a function: little has been pushed, and below it is the address to go on
 * from, of the function itself or of its caller.
 */
static enum step step_probe(const struct nps_unwind *u, const struct nps_expr *e, uint64_t *regs)
{
	struct machine m = machine_of(e->nregs);
	uint64_t sp = regs[m.sp], ra;

	if (code_at(u, regs[m.pc]) == NPS_UNWIND_RETURN && step_trampoline(u, m, regs) == STEPPED)
		return STEPPED;
	if (!m.x86)
		return step_link_register(u, m, regs);
	for (uint64_t i = 0; i < PROBE_WORDS && expr_load(e, sp + 8 * i, &ra); i++) {
		put_back(u, &ra, sp + 8 * i, sp + 8 * i, true);
		if (code_at(u, ra - 1) != NPS_UNWIND_CODE)
			continue;
		regs[m.pc] = ra;
		regs[m.sp] = sp + 8 * (i + 1);
		return STEPPED;
	}
	return STUCK;
}

size_t nps_unwind__walk(const struct nps_unwind *u, uint64_t *frames, bool *complete)
{
	uint64_t regs[NPS_UNWIND_REGS];
	struct machine m = machine_of(u->nregs);
	struct nps_expr e = { .regs = regs,
			      .nregs = u->nregs,
			      .stack_at = u->regs[m.sp],
			      .stack = u->stack,
			      .stack_len = u->stack_len };
	/* In the innermost frame and in one that a signal interrupted. Else pc is behind a call. */
	bool exact = true;
	enum step step = STEPPED;
	size_t n = 0;

	*complete = false;
	memcpy(regs, u->regs, sizeof(regs));
	while (n < NPS_UNWIND_MAX && step == STEPPED) {
		struct nps_elf_image *image;
		Dwarf_Frame *frame;
		enum nps_unwind_code code = NPS_UNWIND_NOWHERE;
		bool signal = false;
		uint64_t vaddr = 0;

		image = u->find(u->ctx, regs[m.pc] - !exact, &vaddr, &code);
		if (!code && n)
			break;
		frames[n++] = regs[m.pc];
		frame = image ? nps_elf_image__frame(image, vaddr) : NULL;
		if (frame)
			step = step_cfi(u, &e, frame, regs, !exact, &signal);
		else if (exact && (code == NPS_UNWIND_PROBE || code == NPS_UNWIND_RETURN))
			step = step_probe(u, &e, regs);
		else
			step = step_fp(u, &e, regs);
		free(frame);
		exact = signal;
		if (n == 1 && u->caller_sp)
			*u->caller_sp = step == STEPPED ? regs[m.sp] : 0;
	}
	*complete = step == BEGUN;
	return n;
}
