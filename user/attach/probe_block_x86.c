/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_block.h"

/* The argument passed in REG, from 1; 0: none. */
static int argument_of(uint16_t reg)
{
	/* clang-format off */
	static const uint16_t regs[6][5] = {
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
	};
	/* clang-format on */

	for (int i = 0; i < 6; i++)
		for (int k = 0; k < 5; k++)
			if (regs[i][k] == reg && reg)
				return i + 1;
	return 0;
}

static bool is_stack_pointer(uint16_t reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

static bool is_frame_pointer(uint16_t reg)
{
	return reg == X86_REG_RBP || reg == X86_REG_EBP || reg == X86_REG_BP || reg == X86_REG_BPL;
}

/* Instructions that only read memory in their first operand. */
static bool reads_first_operand(unsigned id)
{
	switch (id) {
	case X86_INS_CMP:
	case X86_INS_TEST:
	case X86_INS_BT:
	case X86_INS_NOP:
	case X86_INS_PUSH:
		return true;
	}
	return false;
}

/* Is the operand below the stack pointer at the entry: in the function's own frame? */
static bool in_own_frame(const struct nps_block *b, const cs_x86_op *op)
{
	int64_t below;

	if (op->mem.segment != X86_REG_INVALID || op->mem.index != X86_REG_INVALID || !op->size)
		return false;
	if (op->mem.base == X86_REG_RSP)
		below = b->depth;
	else if (op->mem.base == X86_REG_RBP && b->has_frame)
		below = b->frame;
	else
		return false;
	return op->mem.disp <= below - op->size && op->mem.disp >= -(1 << 30);
}

static bool may_write_outside(const struct nps_block *b, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	for (int i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];

		if (op->type != X86_OP_MEM || in->id == X86_INS_LEA)
			continue;
		if ((op->access & CS_AC_WRITE || (!i && !reads_first_operand(in->id))) &&
		    !in_own_frame(b, op))
			return true;
	}
	return false;
}

static bool leaves_block(csh cs, const cs_insn *in)
{
	switch (in->id) {
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
	case X86_INS_JCXZ:
	case X86_INS_JECXZ:
	case X86_INS_JRCXZ:
	case X86_INS_XBEGIN:
	case X86_INS_XABORT:
	case X86_INS_SYSCALL:
	case X86_INS_SYSENTER:
	case X86_INS_INT3:
	case X86_INS_UD2:
	case X86_INS_HLT:
	case X86_INS_ENTER:
	case X86_INS_LEAVE:
		return true;
	}
	return cs_insn_group(cs, in, CS_GRP_JUMP) || cs_insn_group(cs, in, CS_GRP_CALL) ||
	       cs_insn_group(cs, in, CS_GRP_RET) || cs_insn_group(cs, in, CS_GRP_INT) ||
	       cs_insn_group(cs, in, CS_GRP_IRET) || cs_insn_group(cs, in, CS_GRP_PRIVILEGE);
}

/* The instruction writes the stack pointer. False: its new value is unknown. */
static bool x86_move_stack(struct nps_block *b, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;
	int64_t down;

	b->sp_moved = true;
	switch (in->id) {
	case X86_INS_PUSH:
		if (op[0].size != 8)
			return false;
		b->depth += 8;
		return true;
	case X86_INS_SUB:
	case X86_INS_ADD:
		if (op[0].type != X86_OP_REG || op[0].reg != X86_REG_RSP || op[1].type != X86_OP_IMM)
			return false;
		down = in->id == X86_INS_SUB ? op[1].imm : -op[1].imm;
		break;
	case X86_INS_LEA:
		if (op[0].reg != X86_REG_RSP || op[1].mem.base != X86_REG_RSP ||
		    op[1].mem.index != X86_REG_INVALID)
			return false;
		down = -op[1].mem.disp;
		break;
	case X86_INS_AND: /* alignment: down by some bytes */
		return op[0].type == X86_OP_REG && op[0].reg == X86_REG_RSP && op[1].type == X86_OP_IMM &&
		       op[1].imm < 0 && op[1].imm >= -4096;
	default:
		return false;
	}
	if (down < 0 || down > 1 << 30)
		return false;
	b->depth += down;
	return b->depth <= 1 << 30;
}

static bool is_mov_frame(const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;

	return in->id == X86_INS_MOV && in->detail->x86.op_count == 2 && op[0].type == X86_OP_REG &&
	       op[0].reg == X86_REG_RBP && op[1].type == X86_OP_REG && op[1].reg == X86_REG_RSP;
}

bool nps_block_x86__step(struct nps_block *b, const uint8_t *code, size_t len)
{
	const uint8_t *at = code + b->at;
	size_t left = len - b->at;
	uint64_t address = b->at;
	struct nps_block after = *b;
	cs_regs reads, writes;
	uint8_t nr = 0, nw = 0;

	if (b->at >= len || !cs_disasm_iter(b->cs, &at, &left, &address, b->in))
		return false;
	if (leaves_block(b->cs, b->in) || (b->memory_matters && may_write_outside(b, b->in)) ||
	    cs_regs_access(b->cs, b->in, reads, &nr, writes, &nw))
		return false;
	after.at = address;
	for (int i = 0; i < nw; i++) {
		int argument = argument_of(writes[i]);

		if (argument)
			after.overwritten |= 1U << (argument - 1);
		if (is_frame_pointer(writes[i]))
			after.has_frame = false;
	}
	for (int i = 0; i < nw; i++)
		if (is_stack_pointer(writes[i])) {
			if (!x86_move_stack(&after, b->in))
				return false;
			break;
		}
	if (is_mov_frame(b->in)) {
		after.has_frame = true;
		after.frame = b->depth;
	}
	*b = after;
	return true;
}
