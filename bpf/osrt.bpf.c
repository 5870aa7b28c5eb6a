// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * System calls of the watched processes. Long ones are one record each, written when they return. Shorter
 * ones are summed up by thread and number, so that a job that makes a million of them a second can be
 * watched. Raw tracepoints, because all other processes of the host run into them too.
 */
#include "ending.bpf.h"
#include "threads.bpf.h"
#include "os_calls.bpf.h"
#include "text.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Calls shorter than this are summed up, ns; 0: none. */
volatile __u64 threshold_ns = 0; /* the collector raises it where records cost too much */

/*
 * Two tables of sums: one is filled while the collector reads and clears the other, and then swaps them.
 * Not per CPU: a thread is on one CPU at a time, and its sums are its own.
 */
struct syscall_sums {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NPS_MAX_SUMS);
	__type(key, struct nps_sum_key);
	__type(value, struct nps_sum);
};
struct syscall_sums sums_even SEC(".maps");
struct syscall_sums sums_odd SEC(".maps");
volatile __u32 sums_turn = 0;

/*
 * How often a process was removed from the targets. A thread that was watched at the current count still
 * is, which saves a lookup of its process at each call.
 */
volatile __u32 targets_removed = 0;

/*
 * On x86-64 since 6.11 a return probe returns through a system call of its own (uretprobe; uprobe for
 * optimised entries). The job did not make these calls.
 */
static __always_inline bool is_probe_trampoline(long nr)
{
#if defined(__TARGET_ARCH_x86)
	return nr == 335 || nr == 336;
#else
	return false;
#endif
}

/* --- locks --- */

#define FUTEX_OP 0x7f /* above it are flags */
#define FUTEX_WAITS (1U << 0 | 1U << 6 | 1U << 9 | 1U << 11 | 1U << 13) /* WAIT, LOCK_PI, WAIT_BITSET, ... */

/* A locked mutex contains the tid of its owner, so it is read before the wait. */
static __always_inline void begin_wait(struct futex_wait *w, const __u64 arg[4])
{
	w->op = arg[1];
	if ((w->op & FUTEX_OP) > 31 || !(FUTEX_WAITS >> (w->op & FUTEX_OP) & 1))
		return;
	w->address = arg[0];
	w->value = arg[2];
	w->unreadable = bpf_probe_read_user(w->words, sizeof(w->words), (void *)arg[0]) &&
			/* it can be the last word of a page, and not a mutex */
			bpf_probe_read_user(w->words, sizeof(w->words[0]), (void *)arg[0]);
}

static __always_inline void fill_lock(struct nps_event *e, const struct futex_wait *w, __u32 waker)
{
	e->flags = w->unreadable ? NPS_F_SLOT_FAULT(2) : 0;
	e->operation = w->op & FUTEX_OP;
	e->lock.address = w->address;
	e->lock.waker = waker;
	e->lock.value = w->value;
	e->lock.word = w->words[0];
	e->lock.owner = w->words[2];
	e->lock.users = w->words[3];
	e->lock.mutex_kind = w->words[4];
	e->lock.op_flags = w->op >> 7;
}

/* State of the thread if it has slept in the call; NULL: it has not. */
static __always_inline struct nps_thread *sleeper_in(const struct open_syscall *s, __u32 tid)
{
	struct nps_thread *thread = bpf_map_lookup_elem(&scheds, &tid);

	return thread && thread->off > s->start ? thread : NULL;
}

/* Records who ended the wait. Only a waker makes the result 0, and only a thread can wake. */
static __always_inline void send_lock(const struct open_syscall *s, __u64 pid_tgid, long ret, __u64 now)
{
	struct nps_thread *thread = sleeper_in(s, (__u32)pid_tgid);
	struct nps_event *e = thread ? event_reserve(this_ring(), NPS_EV_LOCK) : NULL;

	if (!e)
		return;
	fill_lock(e, &s->wait, ret == 0 && thread->woken > s->start ? thread->last_waker : 0);
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = (__s32)ret;
	e->start = s->start;
	e->dur = now - s->start;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* --- short calls --- */

/*
 * Two functions, so that each has a map that is constant when the kernel compiles it: then the kernel calls
 * the map's lookup directly.
 */
static __always_inline struct nps_sum *find_even(const struct nps_sum_key *key)
{
	struct nps_sum *sum = bpf_map_lookup_elem(&sums_even, key);

	asm volatile("" : "+r"(sum) : "i"(0)); /* keeps the compiler from merging both calls into one */
	return sum;
}

static __always_inline struct nps_sum *find_odd(const struct nps_sum_key *key)
{
	struct nps_sum *sum = bpf_map_lookup_elem(&sums_odd, key);

	asm volatile("" : "+r"(sum) : "i"(1));
	return sum;
}

static __always_inline bool add_to_sum(const struct nps_sum_key *key, __u64 start, __u64 now, long ret,
				       __u64 bytes)
{
	bool odd = sums_turn & 1;
	struct nps_sum *sum = odd ? find_odd(key) : find_even(key);
	__u32 ns = now - start;
	bool failed = ret < 0 && ret >= -4095;

	if (!sum) {
		struct nps_sum fresh = { .first = start,
					 .last = now,
					 .total = ns,
					 .bytes = bytes,
					 .count = 1,
					 .errors = failed,
					 .shortest = ns,
					 .longest = ns };

		return !bpf_map_update_elem(odd ? (void *)&sums_odd : (void *)&sums_even, key, &fresh,
					    BPF_NOEXIST);
	}
	sum->last = now;
	sum->total += ns;
	sum->bytes += bytes;
	sum->count++;
	sum->errors += failed;
	if (ns < sum->shortest)
		sum->shortest = ns;
	if (ns > sum->longest)
		sum->longest = ns;
	return true;
}

/* --- long ones --- */

static __always_inline void explain(struct open_syscall *s, __u8 what, __u32 pid, __u64 arg[4], __u8 *flags)
{
	if (what & CALL_PATH) {
		arg[0] = text_intern(&s->text, pid, arg[0]);
		if (!arg[0])
			*flags |= NPS_F_SLOT_FAULT(0);
	}
	if (what & CALL_PATH_AT) {
		arg[1] = text_intern(&s->text, pid, arg[1]);
		if (!arg[1])
			*flags |= NPS_F_SLOT_FAULT(1);
	}
	if (what & CALL_TIME)
		arg[2] = s->time;
}

static __always_inline void syscall_send(struct open_syscall *s, __u8 flags, const __u64 arg[4],
					 __u64 pid_tgid, long ret, __u64 now, bool wake)
{
	void *ring = this_ring();
	struct nps_event *e = event_reserve(ring, NPS_EV_SYSCALL);

	if (!e)
		return;
	e->flags = flags;
	e->nr = s->nr;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = (__s32)ret;
	e->start = s->start;
	e->dur = now - s->start;
	e->syscall.arg[0] = arg[0];
	e->syscall.arg[1] = arg[1];
	e->syscall.arg[2] = arg[2];
	e->syscall.result = ret;
	bpf_ringbuf_submit(e, wake ? BPF_RB_FORCE_WAKEUP : wake_flag(ring));
}

/* --- entry and return --- */

/* State of this thread; NULL: it is not watched, or there is no room for it. */
static __always_inline struct open_syscall *of_watched_thread(void)
{
	struct open_syscall *s = has_task_storage ? local_find(&syscalls) : NULL;
	__u32 epoch = targets_removed + 1; /* 0: the thread is new */

	if (s && s->epoch == epoch)
		return s;
	if (!(target_flags(bpf_get_current_pid_tgid() >> 32) & NPS_TARGET_OSRT))
		return NULL;
	s = local_get(&syscalls, &no_syscall);
	if (s)
		s->epoch = epoch;
	else
		count_up(NPS_COUNTER_LOST + NPS_EV_SYSCALL);
	return s;
}

SEC("raw_tp/sys_enter")
int BPF_PROG(syscall_entered, struct pt_regs *regs, long nr)
{
	struct open_syscall *s;
	__u64 arg[4];
	__u8 what;

	if (is_probe_trampoline(nr) || ended_at)
		return 0;
	s = of_watched_thread();
	if (!s)
		return 0;
	if (is_foreign(this_task(), nr)) {
		s->start = 0;
		count_up(NPS_COUNTER_FOREIGN);
		return 0;
	}
	s->nr = nr;
	s->left = false;
	what = os_call(nr);
	if (what & (CALL_FUTEX | CALL_TIME)) {
		s->wait.address = 0;
		if (os_call_args(regs, arg))
			count_up(NPS_COUNTER_FAULT);
		else if (what & CALL_FUTEX)
			begin_wait(&s->wait, arg);
		else
			s->time = timeout_of(nr, regs, arg);
	}
	s->start = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/sys_exit")
int BPF_PROG(syscall_returned, struct pt_regs *regs, long ret)
{
	/* Threads of other processes have no state, which is a faster test than that of the process. */
	struct open_syscall *s = local_find(&syscalls);
	__u64 pid_tgid, start, now, arg[4] = {};
	__u8 what, flags = 0;
	bool maps = false;

	if (!s || !s->start)
		return 0; /* entered before we attached */
	start = s->start;
	now = bpf_ktime_get_ns();
	pid_tgid = bpf_get_current_pid_tgid();
	if (ended_at) {
		s->left = true; /* it is reported as it was at the end */
		return 0;
	}
	if (s->epoch != targets_removed + 1 && !(target_flags(pid_tgid >> 32) & NPS_TARGET_OSRT))
		goto done;
	what = os_call(s->nr);
	if ((what || now - start >= threshold_ns) && os_call_args(regs, arg))
		count_up(NPS_COUNTER_FAULT);
	if (what & CALL_SOCKET)
		flags = NPS_F_SOCKET;
	else if (what & CALL_FD)
		flags = fd_kind(this_task(), arg[0]);
	/* A library arrives by mapping code, our helper by a memfd: the reader checks for both. */
	if (what & CALL_MAPS)
		maps = s->nr == NPS_NR_MEMFD_CREATE || (arg[2] & NPS_PROT_EXEC);
	if (now - start < threshold_ns && !maps) {
		struct nps_sum_key key = {
			.pid = pid_tgid >> 32, .tid = (__u32)pid_tgid, .nr = s->nr, .flags = flags
		};

		if (add_to_sum(&key, start, now, ret, (what & CALL_BYTES) && ret > 0 ? ret : 0))
			goto done;
		/* No room for another sum: nothing is lost, the call becomes a record. */
	}
	if ((what & CALL_FUTEX) && s->wait.address)
		send_lock(s, pid_tgid, ret, now);
	explain(s, what, pid_tgid >> 32, arg, &flags);
	syscall_send(s, flags, arg, pid_tgid, ret, now, maps);
done:
	s->start = 0;
	return 0;
}

/* --- at the end --- */

static __always_inline void describe_open(struct task_struct *t, const struct open_syscall *s,
					  struct nps_event *e)
{
	__u8 what = os_call(s->nr);
	struct pt_regs regs;
	__u64 arg[4];

	e->flags = NPS_F_SLOT_FAULT(0) | NPS_F_SLOT_FAULT(1) | NPS_F_SLOT_FAULT(2);
	if (s->left || !user_regs(t, &regs))
		return;
	e->flags = 0;
	os_call_args_of(&regs, arg);
	e->syscall.arg[0] = arg[0];
	e->syscall.arg[1] = arg[1];
	e->syscall.arg[2] = what & CALL_TIME ? s->time : arg[2];
	/* Memory of another process cannot be read here; the collector reads the text. */
	if (what & CALL_PATH)
		e->flags |= NPS_F_SLOT_FAULT(0);
	if (what & CALL_PATH_AT)
		e->flags |= NPS_F_SLOT_FAULT(1);
	if (what & CALL_SOCKET)
		e->flags |= NPS_F_SOCKET;
	else if (what & CALL_FD)
		e->flags |= fd_kind(t, arg[0]);
}

SEC("iter/task")
int open_syscalls(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct open_syscall *s = t ? local_of(&syscalls, t) : NULL;
	struct nps_event e = { .kind = NPS_EV_SYSCALL };

	if (!s || !s->start || s->start >= ended_at)
		return 0;
	e.nr = s->nr;
	describe_open(t, s, &e);
	report_open(ctx, t, &e, s->start);
	if (!(os_call(s->nr) & CALL_FUTEX) || !s->wait.address || !sleeper_in(s, t->pid))
		return 0;
	e.kind = NPS_EV_LOCK;
	fill_lock(&e, &s->wait, 0);
	report_open(ctx, t, &e, s->start);
	return 0;
}
