/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * User stacks of threads whose returns are probed. The kernel replaces the return address of a probed
 * call by that of a trampoline, which ends a walk of the stack. It keeps the original addresses, of the
 * probes of all tools, in a list of the thread: they are read from there, and matched to frames by stack
 * pointer. Linux 6.11 and later restore them in their own user stacks, but by order alone: where frame
 * pointers skip a probed call, the wrong address is restored.
 */
#ifndef NPS_RETURNS_BPF_H
#define NPS_RETURNS_BPF_H

#include "ending.bpf.h"
#include "local.bpf.h"
#include "stack.h"

/* The verifier keeps the bound of a mask where it forgets that of a comparison. */
#define WITHIN(i, mask)                                                                                      \
	({                                                                                                   \
		__u64 _i = (i);                                                                              \
		asm volatile("%0 &= %1" : "+r"(_i) : "i"(mask));                                             \
		_i;                                                                                          \
	})
#define RETURN_AT(i) WITHIN(i, NPS_STACK_RETURNS - 1)
#define FRAME_AT(i) WITHIN(i, NPS_STACK_USER) /* one more than there are frames: the returns follow them */

_Static_assert((NPS_STACK_RETURNS & (NPS_STACK_RETURNS - 1)) == 0, "returns");
_Static_assert((NPS_STACK_USER & (NPS_STACK_USER + 1)) == 0, "frames");

/*
 * Collects the pending returns of the running thread, innermost first, without those of tail calls, which
 * share a stack pointer. Their number is only kept in P: were it a value that the verifier knows, it
 * would follow all code once for each.
 */
static __always_inline void pending_returns(volatile struct nps_pending *p)
{
	struct task_struct *t = this_task();
	struct return_instance *ri = 0;
	__u64 last = 0;

	p->n = p->n_user = p->next = p->candidate = 0;
	/*
	 * A kernel with another layout of the list counts as one without it, so that the program loads
	 * everywhere.
	 */
	if (!bpf_core_field_exists(t->utask) || !bpf_core_field_exists(t->utask->return_instances) ||
	    !bpf_core_field_exists(ri->stack) || !bpf_core_field_exists(ri->orig_ret_vaddr) ||
	    !bpf_core_field_exists(ri->next))
		return;
	ri = BPF_CORE_READ(t, utask, return_instances);
	for (int i = 0; i < NPS_STACK_RETURNS && ri; i++) {
		__u64 stack = BPF_CORE_READ(ri, stack);
		__u32 n = p->n;

		if (!n || stack != last) {
			p->returns[RETURN_AT(n)].stack = stack;
			p->returns[RETURN_AT(n)].address = BPF_CORE_READ(ri, orig_ret_vaddr);
			p->n = n + 1;
		}
		last = stack;
		ri = BPF_CORE_READ(ri, next);
	}
}

#if defined(__TARGET_ARCH_x86)
#define FRAME_POINTER(regs) ((regs)->bp)
#define IS_USER(regs) ((*(volatile unsigned long *)&(regs)->cs & 0xff) == 0x33) /* of a 64-bit program */
#define CODE_ADDRESS(address) (address)
#else
#define FRAME_POINTER(regs) ((regs)->user_regs.regs[29])
#define IS_USER(regs) (!(*(volatile __u64 *)&(regs)->user_regs.pstate & 0x1f))
#define CODE_ADDRESS(address) ((address) & ((1ULL << 48) - 1)) /* sign-extended above */
#endif
/* volatile: the verifier allows only reads of whole words from the context of samples */

/*
 * Is the return address of the frame at FP, whose caller's frame is at NEXT, that of a function entered
 * at STACK?
 */
static __always_inline bool is_return_of(__u64 stack, __u64 fp, __u64 next)
{
#if defined(__TARGET_ARCH_x86)
	return stack == fp + 8;
#else
	/*
	 * The frame record can be anywhere in its function's frame, which ends at the stack pointer of
	 * the entry.
	 */
	return stack > fp && (next <= fp || stack <= next);
#endif
}

/*
 * Follows the frame pointers from FP on and appends to frames[0], which is set; return addresses under
 * probes are restored. Without probes the kernel's own stack would be enough.
 */
static __always_inline void walk_frames(volatile struct nps_pending *p, __u64 fp, __u64 trampoline,
					volatile __u64 *frames)
{
	__u64 frame[2] = {}; /* the caller's frame pointer, the return address */
	bool have = false;

	p->n_user = 1;
	for (int i = 0; i < NPS_STACK_USER + NPS_STACK_RETURNS; i++) {
		__u64 address;
		__u32 n, at;

		if (!have && (!fp || fp & 7 || bpf_probe_read_user(frame, sizeof(frame), (void *)fp)))
			break;
		have = true;
		address = CODE_ADDRESS(frame[1]);
		at = p->candidate;
		if (address == trampoline && at < p->n) {
			p->candidate = at + 1;
			if (!is_return_of(p->returns[RETURN_AT(at)].stack, fp, frame[0]))
				continue; /* its frame was skipped or unwound */
			address = p->returns[RETURN_AT(at)].address;
			p->next = at + 1;
		}
		p->candidate = p->next;
		n = p->n_user;
		if (!address || n >= NPS_STACK_USER)
			break;
		frames[FRAME_AT(n)] = address;
		p->n_user = n + 1;
		if (frame[0] == fp)
			break;
		fp = frame[0];
		have = false;
	}
}

/*
 * The user frames of the running thread, whose registers are REGS, if there are addresses to restore and
 * that is possible.
 */
static __always_inline void mend_frames(volatile struct nps_pending *p, const struct pt_regs *regs,
					volatile __u64 *frames)
{
	struct task_struct *t = this_task();
	__u64 trampoline;

	if (!p->n || !IS_USER(regs) || !bpf_core_field_exists(((struct mm_struct *)0)->uprobes_state) ||
	    !bpf_core_field_exists(((struct xol_area *)0)->vaddr))
		return;
	trampoline = BPF_CORE_READ(t, mm, uprobes_state.xol_area, vaddr);
	if (!trampoline)
		return;
	frames[0] = PT_REGS_IP(regs);
	walk_frames(p, FRAME_POINTER(regs), trampoline, frames);
}

#endif
