/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The end of a capture: iterators go through the threads and write an event for each call that has not
 * returned to the collector (user/sources/calls/open_calls.c).
 */
#ifndef NPS_ENDING_BPF_H
#define NPS_ENDING_BPF_H

#include "common.bpf.h"

/* CLOCK_MONOTONIC ns; 0: the capture goes on. Once it is set the state of threads is not changed any more. */
volatile __u64 ended_at = 0;

/*
 * User registers at the thread's entry into the kernel. False: the
 * kernel does not provide them (before 5.15).
 */
static __always_inline bool user_regs(struct task_struct *t, struct pt_regs *regs)
{
	const void *at;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return false;
	at = (void *)bpf_task_pt_regs(t);
	return at && !bpf_probe_read_kernel(regs, sizeof(*regs), at);
}

/* Has a thread whose stack pointer in user space is SP left the call that was entered at ENTRY_SP? */
static __always_inline bool was_left(__u64 entry_sp, __u64 sp)
{
	return sp > entry_sp && sp - entry_sp < NPS_SAME_STACK;
}

#define PF_EXITING 0x4 /* include/linux/sched.h */

/* Calls of such a thread were left without a return; its user stack pointer is not available any more. */
static __always_inline bool is_exiting(const struct task_struct *t)
{
	return t->flags & PF_EXITING;
}

/* User stack pointer of thread T at its entry into the kernel, 0: unknown. */
static __always_inline __u64 user_stack_pointer(struct task_struct *t)
{
	struct pt_regs regs = {};

	return user_regs(t, &regs) ? PT_REGS_SP(&regs) : 0;
}

/* Writes the event of a call that thread T has had open from START to the end of the capture. */
static __always_inline void report_open(struct bpf_iter__task *ctx, struct task_struct *t,
					struct nps_event *e, __u64 start)
{
	e->flags |= NPS_F_UNFINISHED;
	e->pid = t->tgid;
	e->tid = t->pid;
	e->start = start;
	e->dur = ended_at - start;
	bpf_seq_write(ctx->meta->seq, e, sizeof(*e));
}

#endif
