// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Python stacks between calls that are probed: of what runs, by the clock, and of sleeps. They show the line
 * that a thread is in while it gives the device nothing to do.
 *
 * These programs interrupt those of probes, so states of threads are their own; code objects and stacks
 * that were sent are in the map that all share.
 */
#include "common.bpf.h"
#include "ending.bpf.h"
#include "python.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u64 period_ns = 0; /* of samples */
const volatile __u64 sleep_min = 1000000; /* shorter sleeps are not sent, ns */

struct python_sleep {
	__u64 since; /* 0: it does not sleep */
	__u64 stack;
	__u64 pid_tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct python_sleep);
} python_sleepers SEC(".maps");

static const struct python_sleep no_python_sleep = {};

/* Needed where the maps are hashes. */
SEC("raw_tp/sched_process_exit")
int python_thread_ended(struct bpf_raw_tracepoint_args *ctx)
{
	local_forget(&python_sleepers);
	local_forget(&python_threads);
	return 0;
}

SEC("perf_event")
int python_runs(void *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), stack;

	if (!target_flags(pid_tgid >> 32))
		return 0;
	stack = python_stack(pid_tgid >> 32, NPS_PY_WALK_SAMPLE);
	if (stack && stack != NPS_PY_UNREAD)
		python_event_send(stack, NPS_PY_RAN, pid_tgid, bpf_ktime_get_ns() - period_ns, period_ns,
				  false);
	return 0;
}

/* The stack is that of when it fell asleep: at the switch back the memory is that of another process. */
SEC("tp_btf/sched_switch")
int python_switched(__u64 *ctx)
{
	bool preempted = ctx[0];
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct python_sleep *s = local_of(&python_sleepers, next);
	__u64 now, pid_tgid, stack;

	if (s && s->since) {
		now = bpf_ktime_get_ns();
		if (now - s->since >= sleep_min)
			python_event_send(s->stack, NPS_PY_SLEPT, s->pid_tgid, s->since, now - s->since,
					  false);
		s->since = 0;
	}
	pid_tgid = bpf_get_current_pid_tgid();
	if (preempted || prev->flags & PF_EXITING || !target_flags(pid_tgid >> 32))
		return 0;
	stack = python_stack(pid_tgid >> 32, NPS_PY_WALK_SAMPLE);
	s = stack && stack != NPS_PY_UNREAD ? local_get(&python_sleepers, &no_python_sleep) : NULL;
	if (!s)
		return 0;
	s->stack = stack;
	s->pid_tgid = pid_tgid;
	s->since = bpf_ktime_get_ns();
	return 0;
}
