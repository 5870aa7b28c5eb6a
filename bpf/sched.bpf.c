// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Scheduling of the watched processes, and the start and end of processes and threads. One record per slice
 * on a CPU, written when it ends; it includes how long the thread had slept and been runnable before.
 */
#include "ending.bpf.h"
#include "threads.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Off: only starts and ends are followed. */
const volatile bool with_sched = true;

/* Scheduling is dropped: the state of threads is kept, but no records are made of it. */
volatile bool is_shed = false;

/* Threads whose name was sent, with a hash of the name that detects a change. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, NPS_MAX_THREADS);
	__type(key, __u32);
	__type(value, __u64);
} named SEC(".maps");

static __always_inline __u32 task_state(struct task_struct *t)
{
	struct task_struct___before_5_14 *old = (void *)t;

	/* only the low byte: flags follow above it */
	if (bpf_core_field_exists(t->__state))
		return BPF_CORE_READ(t, __state) & 0xff;
	return BPF_CORE_READ(old, state) & 0xff;
}

/* Sends the name of a thread when it is new or has changed. */
static __always_inline void send_comm(struct task_struct *t, __u32 tid, __u32 pid, __u64 now)
{
	struct nps_string *s;
	char comm[16] = {};
	__u64 *known, mark;
	void *ring;

	bpf_probe_read_kernel(comm, sizeof(comm), &t->comm);
	mark = *(__u64 *)comm ^ (*(__u64 *)(comm + 8) << 1);
	known = bpf_map_lookup_elem(&named, &tid);
	if (known && *known == mark)
		return;
	ring = this_ring();
	s = ring ? bpf_ringbuf_reserve(ring, sizeof(*s), 0) : NULL;
	if (!s) {
		count_up(NPS_COUNTER_LOST + NPS_KIND_STRING);
		return;
	}
	__builtin_memset(s, 0, sizeof(*s));
	s->kind = NPS_STR_COMM;
	s->pid = pid;
	s->id = tid;
	s->time = now;
	__builtin_memcpy(s->text, comm, sizeof(comm));
	s->text[15] = 0;
	for (int i = 0; i < 16; i++)
		if (s->text[i])
			s->len = i + 1;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&named, &tid, &mark, BPF_ANY);
}

#define STATE_EXIT_DEAD 0x10 /* the state of a thread's last slice: X in the kernel's letters */
#define TASK_IS_EXITING 0x4 /* PF_EXITING: set before sched_process_exit, and never cleared */
#define FAULTS_NS 1000000000ULL /* between two records of a thread's page faults */

/*
 * Sends the page faults that the kernel has counted since the thread's
 * last record of them, at most once a second.
 */
static __always_inline void send_faults(struct task_struct *t, struct nps_thread *st, __u32 tid, __u64 now)
{
	__u64 minor = BPF_CORE_READ(t, min_flt), major = BPF_CORE_READ(t, maj_flt);
	struct nps_event *e;

	if (minor == st->minor && major == st->major)
		return;
	if (minor < st->minor || major < st->major) { /* an exec has passed the tid to another thread */
		st->minor = minor;
		st->major = major;
		return;
	}
	e = event_reserve(this_ring(), NPS_EV_FAULT);
	if (!e)
		return; /* the next record includes them */
	e->what = NPS_FAULT_SUM;
	e->pid = st->pid;
	e->tid = tid;
	e->ret = 0;
	e->start = st->faults_reported;
	e->dur = now - st->faults_reported;
	e->fault_sum = (struct nps_event_fault_sum){ .minor = minor - st->minor, .major = major - st->major };
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	st->minor = minor;
	st->major = major;
	st->faults_reported = now;
}

static __always_inline bool counts_waiting(struct task_struct *t)
{
	return bpf_core_field_exists(t->sched_info.run_delay);
}

static __always_inline __u64 waited_for_cpu(struct task_struct *t)
{
	return counts_waiting(t) ? BPF_CORE_READ(t, sched_info.run_delay) : 0;
}

/*
 * A thread seen for the first time. Threads that exit are skipped: the record of their last slice is
 * written at their exit.
 */
static __always_inline void meet(struct task_struct *t, __u32 tid, __u32 pid, __u64 on, __u64 off,
				 __u32 state)
{
	struct nps_thread fresh = { .on = on, .off = off, .pid = pid, .state = state };

	if (BPF_CORE_READ(t, flags) & TASK_IS_EXITING)
		return;
	if (off) {
		fresh.ran = BPF_CORE_READ(t, se.sum_exec_runtime);
		fresh.waited = waited_for_cpu(t);
	}
	fresh.faults_reported = on + off; /* one of them is 0 */
	fresh.minor = BPF_CORE_READ(t, min_flt);
	fresh.major = BPF_CORE_READ(t, maj_flt);
	bpf_map_update_elem(&scheds, &tid, &fresh, BPF_ANY);
}

/*
 * Has it exited? Then the record of its last slice is written. An entry under its tid now belongs to
 * another thread that calls exec: de_thread() in the kernel exchanges the tids of the two.
 */
static __always_inline bool has_exited(struct task_struct *t)
{
	return BPF_CORE_READ(t, exit_state);
}

static __always_inline void left_cpu(struct task_struct *prev, struct nps_thread *st, __u32 tid,
				     __u32 next_tid, __u32 state, __u64 now)
{
	__u64 ran = BPF_CORE_READ(prev, se.sum_exec_runtime), waited = waited_for_cpu(prev);
	struct nps_event *e;
	void *ring;

	/*
	 * Some kernels skip the events of a switch or wake-up while certain tasks have the CPU. The
	 * scheduler still counts how long this thread ran and how long it was runnable before, so both
	 * beginnings follow from that.
	 */
	if (!st->on && st->off && ran > st->ran) {
		st->on = now - (ran - st->ran);
		if (st->on < st->off)
			st->on = st->off;
		if (st->runnable > st->on) /* woken again while it ran */
			st->runnable = st->on;
	}
	if (st->on && st->off && st->state && !st->runnable && counts_waiting(prev) && waited >= st->waited) {
		st->runnable = st->on - (waited - st->waited);
		if (st->runnable < st->off)
			st->runnable = st->off;
	}
	if (st->on) {
		ring = this_ring();
		e = event_reserve(ring, NPS_EV_SCHED);
		if (e) {
			e->probe = 0;
			e->pid = st->pid;
			e->tid = tid;
			e->waker = st->waker;
			e->start = st->on;
			e->dur = now - st->on;
			e->sched.off = st->off;
			e->sched.runnable = st->runnable;
			e->sched.cpu = bpf_get_smp_processor_id();
			e->sched.next = next_tid;
			e->sched.state = state;
			e->sched.prio = BPF_CORE_READ(prev, prio);
			e->sched.reserved = 0;
			bpf_ringbuf_submit(e, wake_flag(ring));
		}
	}
	st->on = 0;
	st->off = now;
	st->state = state;
	st->ran = ran;
	st->waited = waited;
	st->runnable = 0;
	st->waker = 0;
	if (now - st->faults_reported >= FAULTS_NS)
		send_faults(prev, st, tid, now);
}

SEC("raw_tp/sched_switch")
int BPF_PROG(sched_switched, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct nps_thread *st;
	__u64 now;
	__u32 prev_pid, next_pid, prev_tid, next_tid, state;
	bool out, in;

	if (!with_sched)
		return 0;
	prev_pid = BPF_CORE_READ(prev, tgid);
	next_pid = BPF_CORE_READ(next, tgid);
	out = target_flags(prev_pid) & NPS_TARGET_OSRT;
	in = target_flags(next_pid) & NPS_TARGET_OSRT;
	if (!out && !in)
		return 0;
	now = bpf_ktime_get_ns();
	prev_tid = BPF_CORE_READ(prev, pid);
	next_tid = BPF_CORE_READ(next, pid);
	if (out) {
		st = bpf_map_lookup_elem(&scheds, &prev_tid);
		/* it can be preempted on its way to sleep, and is runnable all the same */
		state = preempted ? 0 : task_state(prev);
		if (st && !has_exited(prev))
			left_cpu(prev, st, prev_tid, next_tid, state, now);
		else if (!st)
			meet(prev, prev_tid, prev_pid, 0, now, state);
		send_comm(prev, prev_tid, prev_pid, now);
		if (next_tid)
			send_comm(next, next_tid, next_pid, now);
	}
	if (in) {
		st = bpf_map_lookup_elem(&scheds, &next_tid);
		if (st && !has_exited(next))
			st->on = now;
		else if (!st)
			meet(next, next_tid, next_pid, now, 0, 0);
	}
	return 0;
}

/*
 * x86-64: offset of a CPU's preemption count from its run queue, in bytes, from the kernel's types
 * (user/attach/preempt_count.c); 0: unknown. On arm64 it is in the thread.
 */
const volatile __s64 preempt_count_at = 0;

#define SERVES_SOFTIRQ 0x100U
#define SERVES_INTERRUPT 0xff0000U /* an interrupt of a device, or an NMI */

/* Does an interrupt run? Then `current` is only the thread that it stopped. */
static __always_inline bool in_interrupt(void)
{
	struct task_struct *current = this_task();
	__u32 count = 0;

#if defined(__TARGET_ARCH_x86)
	__u64 rq;

	if (!preempt_count_at || !bpf_core_field_exists(current->se.cfs_rq))
		return false;
	rq = (__u64)BPF_CORE_READ(current, se.cfs_rq, rq);
	bpf_probe_read_kernel(&count, sizeof(count), (void *)(rq + preempt_count_at));
#else
	count = BPF_CORE_READ(current, thread_info.preempt.count);
#endif
	return count & (SERVES_INTERRUPT | SERVES_SOFTIRQ);
}

static __always_inline int woken(struct task_struct *t)
{
	struct nps_thread *st;
	__u32 tid, waker;
	__u64 now;

	if (!with_sched || !(target_flags(BPF_CORE_READ(t, tgid)) & NPS_TARGET_OSRT))
		return 0;
	tid = BPF_CORE_READ(t, pid);
	st = bpf_map_lookup_elem(&scheds, &tid);
	if (!st)
		return 0;
	now = bpf_ktime_get_ns();
	waker = in_interrupt() ? 0 : (__u32)bpf_get_current_pid_tgid();
	/* It can be woken on its way to sleep, before it leaves the CPU. */
	st->woken = now;
	st->last_waker = waker;
	if (!st->on) {
		st->runnable = now;
		st->waker = waker;
	}
	return 0;
}

/* Not sched_wakeup: that can run on the CPU of the woken thread, where `current` is not the waker. */
SEC("raw_tp/sched_waking")
int BPF_PROG(sched_woken, struct task_struct *t)
{
	return woken(t);
}

static __always_inline __u64 started_at(struct task_struct *t)
{
	struct task_struct___before_5_5 *old = (void *)t;

	if (bpf_core_field_exists(t->start_boottime))
		return BPF_CORE_READ(t, start_boottime);
	return BPF_CORE_READ(old, real_start_time);
}

/*
 * Writes PROC, with the comm of ABOUT, the first thread of the process. Read here, because the process may
 * have exited before the collector can read /proc.
 */
static __always_inline void send_proc(enum nps_proc_what what, __u32 pid, __u32 tid,
				      struct task_struct *about, const struct nps_event_proc *proc)
{
	void *ring = this_ring();
	struct nps_event *e = event_reserve(ring, NPS_EV_PROC);

	if (!e)
		return;
	e->proc = *proc;
	bpf_probe_read_kernel(e->proc.comm, sizeof(e->proc.comm), &about->comm);
	e->what = what;
	e->pid = pid;
	e->tid = tid;
	e->parent = BPF_CORE_READ(about, real_parent, tgid);
	e->start = bpf_ktime_get_ns();
	e->born = started_at(about);
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
}

SEC("raw_tp/sched_process_fork")
int BPF_PROG(process_forked, struct task_struct *parent, struct task_struct *child)
{
	__u32 pid = BPF_CORE_READ(parent, tgid);
	__u32 child_pid = BPF_CORE_READ(child, tgid);
	__u32 flags = target_flags(pid);
	struct nps_event_proc proc = { .child = child_pid };

	/* A new thread belongs to its process, which is a target already. */
	if (!(flags & NPS_TARGET_FOLLOW) || child_pid == pid)
		return 0;
	if (bpf_map_update_elem(&targets, &child_pid, &flags, BPF_ANY)) {
		count_up(NPS_COUNTER_LOST + NPS_EV_PROC); /* too many processes: this one is not watched */
		return 0;
	}
	send_proc(NPS_PROC_FORK, pid, BPF_CORE_READ(parent, pid), child, &proc);
	return 0;
}

/*
 * Record of the slice of a thread whose tid changes during exec, up to its first switch under the new tid.
 * That switch found no entry for the new tid, so it began a new one, MET.
 */
static __always_inline void end_stretch(const struct nps_thread *st, const struct nps_thread *met, __u32 tid)
{
	struct nps_event *e = event_reserve(this_ring(), NPS_EV_SCHED);

	if (!e)
		return;
	e->probe = 0;
	e->pid = st->pid;
	e->tid = tid;
	e->waker = st->waker;
	e->start = st->on;
	e->dur = met->faults_reported - st->on;
	e->sched = (struct nps_event_sched){ .off = st->off,
					     .runnable = st->runnable,
					     .cpu = bpf_get_smp_processor_id() };
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* A thread other than the first calls exec: it takes over the tid of the first, which has exited. */
static __always_inline void replace_tid(__u32 old, __u32 tid)
{
	struct nps_thread *st = bpf_map_lookup_elem(&scheds, &old), *met, copy;

	if (!st)
		return;
	copy = *st;
	met = bpf_map_lookup_elem(&scheds, &tid);
	/* The tid changes some time before this tracepoint; a switch between the two has ended the slice. */
	if (met && copy.on && met->faults_reported >= copy.on) {
		if (!is_shed)
			end_stretch(&copy, met, tid);
	} else {
		bpf_map_update_elem(&scheds, &tid, &copy, BPF_ANY);
	}
	bpf_map_delete_elem(&scheds, &old);
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(process_execed, struct task_struct *t, __u32 old)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct nps_event_proc proc = {};

	if (old != (__u32)pid_tgid && !ended_at)
		replace_tid(old, (__u32)pid_tgid);
	if (target_flags(pid_tgid >> 32))
		send_proc(NPS_PROC_EXEC, pid_tgid >> 32, (__u32)pid_tgid, t, &proc);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int BPF_PROG(process_exited, struct task_struct *t)
{
	__u32 pid = BPF_CORE_READ(t, tgid);
	__u32 tid = BPF_CORE_READ(t, pid);
	struct nps_thread *st = with_sched ? bpf_map_lookup_elem(&scheds, &tid) : NULL;
	__u64 now = bpf_ktime_get_ns();
	struct nps_event_proc proc;

	local_forget(&syscalls);
	if (ended_at)
		return 0; /* the collector queries who was there then */
	/*
	 * Before the check whether the process is watched: another thread that
	 * was faster may have ended that.
	 */
	if (st) {
		/* The thread's last slice ends here: for the last thread no switch will follow. */
		if (!is_shed) {
			left_cpu(t, st, tid, 0, STATE_EXIT_DEAD, now);
			send_comm(t, tid, pid, now);
		}
		send_faults(t, st, tid, now);
		bpf_map_delete_elem(&scheds, &tid);
	}
	if (!target_flags(pid))
		return 0;
	/* The exit of the last thread ends the process. */
	if (BPF_CORE_READ(t, signal, live.counter))
		return 0;
	/*
	 * Two threads that exit at the same time can both be the last: only one of them removes the target.
	 */
	if (bpf_map_delete_elem(&targets, &pid) && !watch_all)
		return 0;
	proc = (struct nps_event_proc){ .exit_code = (__u32)BPF_CORE_READ(t, exit_code) };
	proc.cpu_ns = BPF_CORE_READ(t, signal, sum_sched_runtime) + BPF_CORE_READ(t, se.sum_exec_runtime);
	/* Its first thread is kept until the process is waited for, so its time is not in the sum yet. */
	if (tid != pid)
		proc.cpu_ns += BPF_CORE_READ(t, group_leader, se.sum_exec_runtime);
	send_proc(NPS_PROC_EXIT, pid, tid, BPF_CORE_READ(t, group_leader), &proc);
	return 0;
}
