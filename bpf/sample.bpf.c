// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Stacks of the watched processes. On the CPU the kernel's own sampler records them,
 * and the program here only selects whose samples are kept. Off the CPU the stack is
 * read when a thread goes to sleep, and sent when it runs again if it slept long
 * enough. Where returns are probed, the true return addresses are sent too, and the
 * Python stack if it is requested.
 */
#include "python.bpf.h"
#include "returns.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Sleeps shorter than this are not sent, ns. */
const volatile __u64 sleep_min = 1000000;

/* Copy registers and the stack as well, for unwinding without frame pointers. */
const volatile bool with_copy = false;

/* Sleeps, and returns of samples: few enough for one ring. User space sizes it. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} messages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nps_sleep);
} sleepers SEC(".maps");

static const struct nps_sleep no_sleep = {};

/* Needed where the map is a hash. */
SEC("raw_tp/sched_process_exit")
int sleeper_ended(struct bpf_raw_tracepoint_args *ctx)
{
	local_forget(&sleepers);
	return 0;
}

/* One per CPU is enough: programs of samples run with interrupts off. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nps_sample_returns);
} scratch SEC(".maps");

/* User registers of the interrupted program, or of the one that entered the kernel. */
static __always_inline bool sampled_regs(const struct pt_regs *interrupted, struct pt_regs *regs)
{
	if (!IS_USER(interrupted))
		return has_task_storage && user_regs(bpf_get_current_task_btf(), regs);
#if defined(__TARGET_ARCH_x86)
	regs->ip = interrupted->ip;
	regs->bp = interrupted->bp;
	regs->cs = *(volatile unsigned long *)&interrupted->cs;
#else
	regs->user_regs.pc = interrupted->user_regs.pc;
	regs->user_regs.regs[29] = interrupted->user_regs.regs[29];
	regs->user_regs.pstate = *(volatile __u64 *)&interrupted->user_regs.pstate;
#endif
	return true;
}

#define SAMPLE_TIME (1U << 2) /* PERF_SAMPLE_TIME */

/*
 * Time of the sample that CTX belongs to, if it is set already; 0: it will be a little later than now. CTX
 * is read like any kernel memory: read by its type it would need a kernel function (kfunc), and programs
 * that call one load only where the JIT is on.
 */
static __always_inline __u64 sample_time(struct pt_regs *ctx)
{
	struct perf_sample_data *data = 0;

	if (!bpf_core_field_exists(data->sample_flags))
		return 0;
	data = BPF_CORE_READ((struct bpf_perf_event_data_kern *)ctx, data);
	return BPF_CORE_READ(data, sample_flags) & SAMPLE_TIME ? BPF_CORE_READ(data, time) : 0;
}

/* The Python stack of the running thread; stack 0: none. */
static __always_inline void read_python(struct nps_stack_python *python, __u32 at, __u32 pid)
{
	const struct python_state *s;

	python->stack = python->entry = 0;
	if (!(python_at & at))
		return;
	python->stack = python_stack(pid, NPS_PY_WALK_SAMPLE);
	s = python->stack ? local_find(&python_threads) : NULL;
	if (s)
		python->entry = s->entry;
}

/* Sends what the sample, which follows at once, lacks. The context begins with the registers. */
static __always_inline void send_lacking(struct pt_regs *ctx)
{
	struct nps_sample_returns *s;
	struct pt_regs regs = {};
	__u32 only = 0, n, size = __builtin_offsetof(struct nps_sample_returns, user);

	s = bpf_map_lookup_elem(&scratch, &only);
	if (!s)
		return;
	read_python(&s->python, NPS_PY_AT_SAMPLE, bpf_get_current_pid_tgid() >> 32);
	pending_returns(&s->pending);
	if (!s->pending.n && !s->python.stack)
		return;
	s->message = NPS_MSG_RETURNS;
	s->tid = (__u32)bpf_get_current_pid_tgid();
	s->cpu = bpf_get_smp_processor_id();
	if (sampled_regs(ctx, &regs))
		mend_frames(&s->pending, &regs, s->user);
	s->time = sample_time(ctx);
	s->exact = s->time != 0;
	if (!s->exact)
		s->time = bpf_ktime_get_ns();
	n = s->pending.n;
	if (n > NPS_STACK_RETURNS)
		n = NPS_STACK_RETURNS;
	if (n)
		size = __builtin_offsetof(struct nps_sample_returns, pending.returns) +
		       n * sizeof(s->pending.returns[0]);
	if (bpf_ringbuf_output(&messages, s, size, BPF_RB_NO_WAKEUP))
		count_up(NPS_COUNTER_LOST + NPS_EV_STACK);
}

/* 0: the kernel drops the sample. */
SEC("perf_event")
int sample_wanted(struct pt_regs *ctx)
{
	if (!target_flags(bpf_get_current_pid_tgid() >> 32))
		return 0;
	send_lacking(ctx);
	return 1;
}

static __always_inline __u32 state_of(struct task_struct *t)
{
	struct task_struct___before_5_14 *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		return BPF_CORE_READ(t, __state) & 0xff;
	return BPF_CORE_READ(old, state) & 0xff;
}

#if defined(__TARGET_ARCH_x86)
#define SP_INDEX 7
static __always_inline void put_regs(struct nps_sleep *s, const struct pt_regs *r)
{
	s->regs[0] = r->ax;
	s->regs[1] = r->dx;
	s->regs[2] = r->cx;
	s->regs[3] = r->bx;
	s->regs[4] = r->si;
	s->regs[5] = r->di;
	s->regs[6] = r->bp;
	s->regs[7] = r->sp;
	s->regs[8] = r->r8;
	s->regs[9] = r->r9;
	s->regs[10] = r->r10;
	s->regs[11] = r->r11;
	s->regs[12] = r->r12;
	s->regs[13] = r->r13;
	s->regs[14] = r->r14;
	s->regs[15] = r->r15;
	s->regs[16] = r->ip;
	s->n_regs = 17;
}
#else
#define SP_INDEX 31
static __always_inline void put_regs(struct nps_sleep *s, const struct pt_regs *r)
{
	/* x0..x30, sp and pc are in the order of DWARF's numbers */
	__builtin_memcpy(s->regs, &r->user_regs, NPS_STACK_REGS * sizeof(s->regs[0]));
	s->n_regs = NPS_STACK_REGS;
}
#endif

/*
 * A read that meets an unmapped page fails as a whole, and the top of a stack can be near one. So three
 * sizes are tried: all, up to the second page boundary above the pointer, up to the first.
 */
static __always_inline void copy_stack(struct nps_sleep *s, __u64 sp)
{
	__u32 to_page = 4096 - (sp & 4095), n = 4096 + to_page;

	s->flags |= NPS_STACK_F_CUT;
	if (!bpf_probe_read_user(s->stack, NPS_SLEEP_BYTES, (void *)sp)) {
		s->n_bytes = NPS_SLEEP_BYTES;
		return;
	}
	s->flags &= ~NPS_STACK_F_CUT;
	if (n <= NPS_SLEEP_BYTES && !bpf_probe_read_user(s->stack, n, (void *)sp))
		s->n_bytes = n;
	else if (to_page <= 4096 && !bpf_probe_read_user(s->stack, to_page, (void *)sp))
		s->n_bytes = to_page;
}

static __always_inline void fell_asleep(void *ctx, struct task_struct *prev, __u32 state)
{
	struct nps_sleep *s = local_get(&sleepers, &no_sleep);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct pt_regs regs;

	if (!s) {
		count_up(NPS_COUNTER_LOST + NPS_EV_STACK);
		return;
	}
	s->message = NPS_MSG_SLEEP;
	s->pid = pid_tgid >> 32;
	s->tid = (__u32)pid_tgid;
	s->state = state;
	s->cpu = bpf_get_smp_processor_id();
	s->flags = 0;
	s->n_regs = 0;
	s->n_bytes = 0;
	read_python(&s->python, NPS_PY_AT_OFFCPU, s->pid);
	s->kernel_bytes = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
	s->user_bytes = bpf_get_stack(ctx, s->user, sizeof(s->user), BPF_F_USER_STACK);
	pending_returns(&s->pending);
	if (has_task_storage && user_regs(bpf_get_current_task_btf(), &regs)) {
		mend_frames(&s->pending, &regs, s->user);
		if (s->pending.n_user)
			s->user_bytes = s->pending.n_user * sizeof(s->user[0]);
		if (with_copy) {
			put_regs(s, &regs);
			copy_stack(s, s->regs[SP_INDEX]);
		}
	}
	s->since = bpf_ktime_get_ns();
}

static __always_inline void sleep_send(struct nps_sleep *s, __u64 now)
{
	__u32 n = s->n_bytes;

	s->until = now;
	if (n > NPS_SLEEP_BYTES)
		n = NPS_SLEEP_BYTES;
	if (bpf_ringbuf_output(&messages, s, __builtin_offsetof(struct nps_sleep, stack) + n,
			       BPF_RB_NO_WAKEUP))
		count_up(NPS_COUNTER_LOST + NPS_EV_STACK);
}

/* A preempted thread is not asleep: scheduling records cover it. */
SEC("tp_btf/sched_switch")
int stack_switched(__u64 *ctx)
{
	bool preempted = ctx[0];
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	struct nps_sleep *s = local_of(&sleepers, next);
	__u64 now;
	__u32 state;

	if (s && s->since) {
		now = bpf_ktime_get_ns();
		if (now - s->since >= sleep_min)
			sleep_send(s, now);
		s->since = 0;
	}
	if (preempted || !target_flags(BPF_CORE_READ(prev, tgid)))
		return 0;
	state = state_of(prev);
	if (state && !(state & 0x90)) /* runnable, or dead: never asleep */
		fell_asleep(ctx, prev, state);
	return 0;
}

/* At the end of the capture, when recording has stopped: threads that are still asleep. */
SEC("iter/task")
int stack_sleepers(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct nps_sleep *s;
	__u64 now = bpf_ktime_get_ns();

	if (!t)
		return 0;
	s = local_of(&sleepers, t);
	if (!s || !s->since)
		return 0;
	s->flags |= NPS_STACK_F_OPEN;
	if (now - s->since >= sleep_min)
		sleep_send(s, now);
	s->since = 0;
	return 0;
}
