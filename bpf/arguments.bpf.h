/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Arguments of the function at whose entry a probe is. */
#ifndef NPS_ARGUMENTS_BPF_H
#define NPS_ARGUMENTS_BPF_H

#include "call_stack.bpf.h"

/*
 * Arguments in registers, and the address of those on the stack. All are
 * read: the verifier wants fixed offsets.
 */
struct arguments {
	__u64 reg[8];
	__u64 stack;
};

#if defined(__TARGET_ARCH_x86)
#define REGISTERS 6
#define ABOVE_RETURN_ADDRESS 8
#else
#define REGISTERS 8
#define ABOVE_RETURN_ADDRESS 0
#endif

static __always_inline void load_arguments(struct pt_regs *ctx, struct arguments *a)
{
	a->reg[0] = PT_REGS_PARM1(ctx);
	a->reg[1] = PT_REGS_PARM2(ctx);
	a->reg[2] = PT_REGS_PARM3(ctx);
	a->reg[3] = PT_REGS_PARM4(ctx);
	a->reg[4] = PT_REGS_PARM5(ctx);
#if defined(__TARGET_ARCH_x86)
	a->reg[5] = ctx->r9;
	a->reg[6] = a->reg[7] = 0;
#else
	a->reg[5] = ctx->user_regs.regs[5];
	a->reg[6] = ctx->user_regs.regs[6];
	a->reg[7] = ctx->user_regs.regs[7];
#endif
	a->stack = PT_REGS_SP(ctx) + ABOVE_RETURN_ADDRESS;
}

/* Argument N, from 1. 0 and *LOST: its page was not mapped, as while the kernel migrates it. */
static __always_inline __u64 call_argument(const struct arguments *a, __u8 n, bool *lost)
{
	__u64 v = 0;

	if (n <= REGISTERS)
		return a->reg[MASKED(n - 1, 8)];
	if (bpf_probe_read_user(&v, sizeof(v), (void *)(a->stack + 8 * (n - REGISTERS - 1))))
		*lost = true;
	return v;
}

#endif
