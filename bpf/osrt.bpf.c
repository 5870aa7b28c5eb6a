// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * System calls of the watched processes: one record per call, written when it
 * returns. Raw tracepoints, because every other process of the host pays for them too.
 */
#include "common.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct open_syscall {
	__u64 start;
	__u64 args[3];
	__u32 nr;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct open_syscall);
} syscalls SEC(".maps");

/*
 * On x86-64 since 6.11 a return probe comes back through a system call of its own
 * (uretprobe, and uprobe for optimised entries): our doing, not the job's.
 */
static __always_inline bool is_probe_trampoline(long nr)
{
#if defined(__TARGET_ARCH_x86)
	return nr == 335 || nr == 336;
#else
	return false;
#endif
}

static __always_inline int read_args(struct pt_regs *regs, __u64 args[3])
{
#if defined(__TARGET_ARCH_x86)
	/* dx, si, di lie next to each other */
	__u64 r[3];
	long err = bpf_probe_read_kernel(r, sizeof(r), &regs->dx);

	args[0] = r[2];
	args[1] = r[1];
	args[2] = r[0];
	return err;
#else
	return bpf_probe_read_kernel(args, 3 * sizeof(args[0]), &regs->user_regs.regs[0]);
#endif
}

SEC("raw_tp/sys_enter")
int syscall_entered(struct bpf_raw_tracepoint_args *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	long nr = (long)ctx->args[1];
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct open_syscall *s;

	if (is_probe_trampoline(nr) || !(target_flags(pid) & NPS_TARGET_OSRT))
		return 0;
	s = bpf_task_storage_get(&syscalls, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s) {
		count(NPS_COUNTER_LOST + NPS_EV_SYSCALL);
		return 0;
	}
	s->nr = nr;
	if (read_args(regs, s->args))
		count(NPS_COUNTER_FAULT);
	s->start = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/sys_exit")
int syscall_returned(struct bpf_raw_tracepoint_args *ctx)
{
	long ret = (long)ctx->args[1];
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct open_syscall *s;
	struct nps_event *e;
	__u64 flags;
	void *ring;

	if (!(target_flags(pid_tgid >> 32) & NPS_TARGET_OSRT))
		return 0;
	s = bpf_task_storage_get(&syscalls, bpf_get_current_task_btf(), 0, 0);
	if (!s || !s->start)
		return 0; /* entered before we attached */
	ring = this_ring();
	e = event_reserve(ring, NPS_EV_SYSCALL);
	if (e) {
		e->probe = s->nr;
		e->pid = pid_tgid >> 32;
		e->tid = (__u32)pid_tgid;
		e->ret = (__s32)ret;
		e->start = s->start;
		e->dur = bpf_ktime_get_ns() - s->start;
		e->args[0] = s->args[0];
		e->args[1] = s->args[1];
		e->args[2] = s->args[2];
		e->args[3] = ret;
		flags = wake_flag(ring);
		/* Mapping code is how a library arrives, and a memfd how our helper does: the reader looks. */
		if ((s->nr == NPS_NR_MMAP && (s->args[2] & NPS_PROT_EXEC)) || s->nr == NPS_NR_MEMFD_CREATE)
			flags = BPF_RB_FORCE_WAKEUP;
		bpf_ringbuf_submit(e, flags);
	}
	s->start = 0;
	return 0;
}
