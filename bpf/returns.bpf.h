/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Stacks of threads whose returns are probed. The kernel replaces the return address of a probed call by that of a trampoline,
 * so whoever walks the stack gets no farther. The kernel keeps the addresses, of probes of all tools, in a list of the thread:
 * they are read from there, and belong to a frame by their place on the stack. Linux 6.11 and later put them back into their own
 * user stacks, but by their order alone: where frame pointers skip a probed call the wrong one comes back.
 */
#ifndef NPS_RETURNS_BPF_H
#define NPS_RETURNS_BPF_H

#include "ending.bpf.h"
#include "local.bpf.h"
#include "stack.h"

/* The verifier follows a mask where it forgets a comparison. */
#define WITHIN(i, mask)                                                                                      \
	({                                                                                                   \
		__u64 _i = (i);                                                                              \
		asm volatile("%0 &= %1" : "+r"(_i) : "i"(mask));                                             \
		_i;                                                                                          \
	})
#define RETURN_AT(i) WITHIN(i, NPS_STACK_RETURNS - 1)
#define FRAME_AT(i) WITHIN(i, NPS_STACK_USER) /* one more than there are: the returns lie behind them */

_Static_assert((NPS_STACK_RETURNS & (NPS_STACK_RETURNS - 1)) == 0, "returns");
_Static_assert((NPS_STACK_USER & (NPS_STACK_USER + 1)) == 0, "frames");

/* Pending returns of the thread that runs, innermost first, without those of tail calls, which share a stack pointer. */
static __always_inline __u32 pending_returns(struct nps_return *returns)
{
	struct task_struct *t = this_task();
	struct return_instance *ri;
	__u64 stack = 0, last = 0;
	__u32 n = 0;

	if (!bpf_core_field_exists(t->utask))
		return 0;
	ri = BPF_CORE_READ(t, utask, return_instances);
	for (int i = 0; i < NPS_STACK_RETURNS && ri; i++) {
		stack = BPF_CORE_READ(ri, stack);
		if (!n || stack != last) {
			returns[RETURN_AT(n)].stack = stack;
			returns[RETURN_AT(n)].address = BPF_CORE_READ(ri, orig_ret_vaddr);
			n++;
		}
		last = stack;
		ri = BPF_CORE_READ(ri, next);
	}
	return n;
}

#if defined(__TARGET_ARCH_x86)
#define FRAME_POINTER(regs) ((regs)->bp)
#define IS_USER(regs) ((regs)->cs == 0x33) /* of a 64-bit program */
#define CODE_ADDRESS(address) (address)
#else
#define FRAME_POINTER(regs) ((regs)->user_regs.regs[29])
#define IS_USER(regs) (!((regs)->user_regs.pstate & 0x1f))
#define CODE_ADDRESS(address) ((address) & ((1ULL << 48) - 1)) /* signed above */
#endif

/* Is the return address of the frame at FP, whose caller's frame is at NEXT, the one that R is in the place of? */
static __always_inline bool is_return_of(const struct nps_return *r, __u64 fp, __u64 next)
{
#if defined(__TARGET_ARCH_x86)
	return r->stack == fp + 8;
#else
	/* The frame record lies anywhere in its function's frame, which ends at the stack pointer of the entry. */
	return r->stack > fp && (next <= fp || r->stack <= next);
#endif
}

/*
 * The chain of frame pointers from FP on, behind frames[0], which is there; return addresses under probes, RETURNS, are put back.
 * Returns the number of all frames. What the kernel gives would do but for those.
 */
static __always_inline __u32 walk_frames(__u64 fp, const struct nps_return *returns, __u32 n_returns,
					 __u64 trampoline, __u64 *frames)
{
	__u64 frame[2] = {}; /* the caller's frame pointer, the return address */
	__u32 n = 1, next = 0, candidate = 0; /* next: behind the last return that was put back */
	bool have = false;

	for (int i = 0; i < NPS_STACK_USER + NPS_STACK_RETURNS; i++) {
		__u64 address;

		if (!have && (!fp || fp & 7 || bpf_probe_read_user(frame, sizeof(frame), (void *)fp)))
			break;
		have = true;
		address = CODE_ADDRESS(frame[1]);
		if (address == trampoline && candidate < n_returns) {
			const struct nps_return *r = &returns[RETURN_AT(candidate)];

			candidate++;
			if (!is_return_of(r, fp, frame[0]))
				continue; /* of a frame that was skipped, or is gone */
			address = r->address;
			next = candidate;
		}
		candidate = next;
		if (!address || n >= NPS_STACK_USER)
			break;
		frames[FRAME_AT(n)] = address;
		n++;
		if (frame[0] == fp)
			break;
		fp = frame[0];
		have = false;
	}
	return n;
}

/* The user frames of the thread that runs, whose registers are REGS, or 0: nothing has to be put back, or it cannot be. */
static __always_inline __u32 mended_frames(const struct pt_regs *regs, const struct nps_return *returns,
					   __u32 n_returns, __u64 *frames)
{
	struct task_struct *t = this_task();
	__u64 trampoline = 0;

	if (!n_returns || !IS_USER(regs) || !bpf_core_field_exists(t->mm->uprobes_state))
		return 0;
	trampoline = BPF_CORE_READ(t, mm, uprobes_state.xol_area, vaddr);
	if (!trampoline)
		return 0;
	frames[0] = PT_REGS_IP(regs);
	return walk_frames(FRAME_POINTER(regs), returns, n_returns, trampoline, frames);
}

#endif
