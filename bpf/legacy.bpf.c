// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * CANN calls, submissions, marks and system calls on kernels without their own types (BTF) or without ring
 * buffers: Linux 4.18 to 5.7, and later ones that were configured so. Written for the verifier of 4.19: no
 * global data, no relocation against the kernel's types, no loops, no function calls, at most 4096
 * instructions a program, records by perf events. Not recorded here: scheduling, locks, children of the
 * job, tensors, domains of marks, the kind of a descriptor.
 */
#include "ktypes.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf_shared.h"
#include "event.h"
#include "legacy.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct legacy_call {
	__u64 start, sp;
	__u64 slot[4]; /* by the probe's row of the catalogue */
	__u32 probe;
	__u8 flags;
	__u8 covers; /* its own record is enough: rows of the catalogue that fold are not recorded in it */
	__u16 group;
};

struct legacy_thread {
	__u64 regs[8]; /* arguments of the current call */
	__u64 syscall_start; /* 0: in none */
	__u64 syscall;
	__u64 maps; /* third argument of mmap, the protection; 0 for other calls */
	struct legacy_call calls[NPS_LEGACY_DEPTH];
	__u32 depth, pad;
	struct nps_string text;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NPS_MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NPS_COUNTER_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NPS_LEGACY_SPECS);
	__type(key, __u32);
	__type(value, struct nps_legacy_spec);
} specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NPS_GROUPS);
	__type(key, __u32);
	__type(value, struct nps_legacy_group);
} groups SEC(".maps");

/* The cookie, which the trampoline program of a probe stores. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} cookie SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32); /* tid */
	__type(value, struct legacy_thread);
} threads SEC(".maps");

/* Zeros, in a map: too large for the stack, and these kernels have no constant data. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct legacy_thread);
} nothing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
} interned SEC(".maps");

static __always_inline void legacy_count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &what);

	if (n)
		*n += 1;
}

static __always_inline bool is_target(__u32 pid, __u32 flag)
{
	__u32 *flags = bpf_map_lookup_elem(&targets, &pid);

	return flags && *flags & flag;
}

static __always_inline struct legacy_thread *thread_of(__u32 tid)
{
	struct legacy_thread *t = bpf_map_lookup_elem(&threads, &tid), *zero;
	__u32 only = 0;

	if (t)
		return t;
	zero = bpf_map_lookup_elem(&nothing, &only);
	if (!zero || bpf_map_update_elem(&threads, &tid, zero, BPF_NOEXIST))
		return NULL;
	return bpf_map_lookup_elem(&threads, &tid);
}

static __always_inline void emit(void *ctx, struct nps_event *e)
{
	if (bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, e, sizeof(*e)))
		legacy_count(NPS_COUNTER_LOST + e->kind);
}

/* --- texts: as bpf/text.bpf.h, but only the first record of each --- */

static __always_inline __u64 legacy_intern(void *ctx, struct legacy_thread *t, __u32 pid, __u64 address)
{
	struct nps_string *s = &t->text;
	__u64 *words = (__u64 *)s->text, id = 0xcbf29ce484222325ULL;
	__u8 one = 1;
	long n;

#pragma unroll
	for (int i = 0; i < NPS_STR_MAX / 8; i++)
		words[i] = 0;
	n = bpf_probe_read_str(s->text, sizeof(s->text), (void *)address);
	if (n <= 0 || n > NPS_STR_MAX)
		return 0;
#pragma unroll
	for (int i = 0; i < NPS_STR_MAX / 8; i++) {
		if (i * 8 < n) {
			id = (id ^ words[i]) * 0x100000001b3ULL;
			id ^= id >> 29;
		}
	}
	id = id ? id : 1;
	if (bpf_map_lookup_elem(&interned, &id))
		return id;
	s->kind = NPS_STR_TEXT;
	s->flags = n == NPS_STR_MAX ? NPS_STR_CUT : 0;
	s->len = n - 1;
	s->pid = pid;
	s->id = id;
	s->time = bpf_ktime_get_ns();
	if (bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, s, sizeof(*s))) {
		legacy_count(NPS_COUNTER_LOST + NPS_KIND_STRING);
		return id;
	}
	if (n == NPS_STR_MAX)
		legacy_count(NPS_COUNTER_TEXT_CUT);
	bpf_map_update_elem(&interned, &id, &one, BPF_ANY);
	return id;
}

/* --- calls --- */

#if defined(__TARGET_ARCH_x86)
#define SP_POPPED_BY_RETURN 8
#define REGISTERS 6
#define ABOVE_RETURN_ADDRESS 8
#else
#define SP_POPPED_BY_RETURN 0
#define REGISTERS 8
#define ABOVE_RETURN_ADDRESS 0
#endif

/* The verifier must see that the index is in bounds. */
#define BOUNDED(i, n)                                                                                        \
	({                                                                                                   \
		__u64 _i = (i);                                                                              \
		asm volatile("%0 &= %1" : "+r"(_i) : "i"((n)-1));                                            \
		_i;                                                                                          \
	})

static __always_inline void load_registers(struct pt_regs *ctx, __u64 *regs)
{
	regs[0] = PT_REGS_PARM1(ctx);
	regs[1] = PT_REGS_PARM2(ctx);
	regs[2] = PT_REGS_PARM3(ctx);
	regs[3] = PT_REGS_PARM4(ctx);
	regs[4] = PT_REGS_PARM5(ctx);
#if defined(__TARGET_ARCH_x86)
	regs[5] = ctx->r9;
#else
	regs[5] = ctx->user_regs.regs[5];
	regs[6] = ctx->user_regs.regs[6];
	regs[7] = ctx->user_regs.regs[7];
#endif
}

static __always_inline __u64 legacy_argument(struct legacy_thread *t, __u64 stack, __u8 n, bool *fault)
{
	__u64 v = 0;

	if (n <= REGISTERS)
		return t->regs[BOUNDED(n - 1, 8)];
	*fault = bpf_probe_read(&v, sizeof(v), (void *)(stack + 8 * (n - REGISTERS - 1)));
	return v;
}

static __always_inline __u64 entry_slot(void *ctx, struct legacy_thread *t, __u64 stack, __u32 pid,
					const struct nps_slot *slot, bool *fault)
{
	__u64 v, to = 0;

	*fault = false;
	if (slot->how == NPS_SLOT_NONE || slot->how == NPS_SLOT_RESULT || slot->how == NPS_SLOT_PROBE)
		return 0;
	v = legacy_argument(t, stack, slot->arg, fault);
	if (!v)
		return 0;
	if (slot->how == NPS_SLOT_TEXT_SIZED) {
		/* The struct of an older caller ends before the text. */
		*fault = bpf_probe_read(&to, sizeof(to), (void *)v);
		if (to < slot->offset + NPS_STR_MAX)
			return 0;
	}
	v += slot->offset;
	to = 0;
	if (slot->how == NPS_SLOT_IN32) {
		*fault = bpf_probe_read(&to, 4, (void *)v);
		return to;
	}
	if (slot->how == NPS_SLOT_IN64 || slot->how == NPS_SLOT_TEXT_PTR) {
		*fault = bpf_probe_read(&to, 8, (void *)v);
		if (slot->how == NPS_SLOT_IN64 || !to)
			return to;
		v = to;
	}
	if (slot->how == NPS_SLOT_STR || slot->how == NPS_SLOT_TEXT_IN || slot->how == NPS_SLOT_TEXT_PTR ||
	    slot->how == NPS_SLOT_TEXT_SIZED) {
		to = legacy_intern(ctx, t, pid, v);
		*fault = !to; /* the reader tries again with the address */
		return to ? to : v;
	}
	return v;
}

static __always_inline void entry_slots(struct pt_regs *ctx, struct legacy_thread *t, __u32 pid,
					const struct nps_legacy_spec *spec, __u64 *slot, __u8 *flags)
{
	__u64 stack = PT_REGS_SP(ctx) + ABOVE_RETURN_ADDRESS;

	load_registers(ctx, t->regs);
#pragma unroll
	for (int i = 0; i < 4; i++) {
		bool fault;

		slot[i] = entry_slot(ctx, t, stack, pid, &spec->slot[i], &fault);
		if (fault) {
			*flags |= NPS_F_SLOT_FAULT(i);
			legacy_count(NPS_COUNTER_FAULT);
		}
	}
}

static __always_inline const struct nps_legacy_spec *spec_of_probe(__u32 *probe, __u32 *class, __u32 *group)
{
	__u32 only = 0;
	__u64 *left = bpf_map_lookup_elem(&cookie, &only);

	if (!left)
		return NULL;
	*probe = NPS_COOKIE_PROBE(*left);
	*class = NPS_COOKIE_CLASS(*left);
	*group = NPS_COOKIE_GROUP(*left);
	return bpf_map_lookup_elem(&specs, probe);
}

/* Drops calls whose stack frame was unwound by longjmp or an exception. */
static __always_inline void legacy_drop_dead(struct legacy_thread *t, __u64 sp, __u32 probe)
{
#pragma unroll
	for (__u32 i = 0; i < NPS_LEGACY_DEPTH; i++) {
		struct legacy_call *c;

		if (!t->depth || t->depth > NPS_LEGACY_DEPTH)
			return;
		c = &t->calls[BOUNDED(t->depth - 1, NPS_LEGACY_DEPTH)];
		if (c->sp > sp || (c->sp == sp && c->probe != probe))
			return;
		legacy_count(NPS_COUNTER_UNRETURNED);
		t->depth--;
	}
}

static __always_inline bool group_is_detached(__u32 group)
{
	struct nps_legacy_group *g = bpf_map_lookup_elem(&groups, &group);

	return g && g->state == NPS_GROUP_DETACHED;
}

static __always_inline bool is_below_covered(const struct legacy_thread *t)
{
#pragma unroll
	for (__u32 i = 0; i < NPS_LEGACY_DEPTH; i++)
		if (i < t->depth && t->calls[i].covers && !group_is_detached(t->calls[i].group))
			return true;
	return false;
}

/* A call of GROUP is entered: is it recorded? */
static __always_inline bool is_recorded(__u32 group)
{
	struct nps_legacy_group *g = bpf_map_lookup_elem(&groups, &group);

	if (!g)
		return true;
	if (group >= NPS_GROUPS_COUNTED)
		__sync_fetch_and_add(&g->entered, 1);
	return g->state == NPS_GROUP_ATTACHED;
}

SEC("kprobe/call_entry")
int call_entry(struct pt_regs *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), sp = PT_REGS_SP(ctx);
	const struct nps_legacy_spec *spec;
	struct legacy_thread *t;
	struct legacy_call *c;
	__u32 probe, class, group;

	spec = spec_of_probe(&probe, &class, &group);
	if (!spec || !is_target(pid_tgid >> 32, ~0U))
		return 0;
	legacy_count(NPS_COUNTER_CALLS + class);
	if (!is_recorded(group))
		return 0;
	t = thread_of((__u32)pid_tgid);
	if (t)
		legacy_drop_dead(t, sp, probe);
	if (t && spec->flags & NPS_P_FOLD && is_below_covered(t))
		return 0;
	if (!t || t->depth >= NPS_LEGACY_DEPTH) {
		legacy_count(NPS_COUNTER_LOST + NPS_EV_API);
		return 0;
	}
	c = &t->calls[BOUNDED(t->depth, NPS_LEGACY_DEPTH)];
	c->flags = 0;
	c->covers = !(spec->flags & NPS_P_OPEN);
	c->probe = probe;
	c->group = group;
	c->sp = sp;
	entry_slots(ctx, t, pid_tgid >> 32, spec, c->slot, &c->flags);
	t->depth++;
	c->start = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void return_slots(struct pt_regs *ctx, struct legacy_thread *t, __u32 pid,
					 const struct nps_legacy_spec *spec, struct legacy_call *c)
{
#pragma unroll
	for (int i = 0; i < 4; i++) {
		__u8 how = spec->slot[i].how;
		bool fault = false;
		__u64 v = 0;

		if (how == NPS_SLOT_RESULT)
			c->slot[i] = PT_REGS_RC(ctx);
		if (!c->slot[i])
			continue;
		if (how == NPS_SLOT_OUT64) {
			fault = bpf_probe_read(&v, 8, (void *)c->slot[i]);
		} else if (how == NPS_SLOT_OUT32) {
			fault = bpf_probe_read(&v, 4, (void *)c->slot[i]);
		} else if (how == NPS_SLOT_OUTSTR) {
			v = legacy_intern(ctx, t, pid, c->slot[i]);
			fault = !v;
		} else {
			continue;
		}
		if (fault) {
			c->flags |= NPS_F_SLOT_FAULT(i);
			legacy_count(NPS_COUNTER_FAULT);
		}
		c->slot[i] = v;
	}
}

/* The argument of halSqTaskSend (cann-abi: struct halTaskSendInfo). */
struct legacy_send_info {
	__s32 type;
	__u32 ts_id, sq_id;
	__s32 timeout;
	__u64 sqe_addr;
	__u32 sqe_num, pos;
};

static __always_inline void legacy_send_sqes(struct pt_regs *ctx, struct legacy_call *c, struct nps_event *e)
{
	struct legacy_send_info info = {};

	if (bpf_probe_read(&info, sizeof(info), (void *)c->slot[1])) {
		legacy_count(NPS_COUNTER_FAULT);
		return;
	}
	e->kind = NPS_EV_SQE;
	e->flags = info.sqe_num > NPS_LEGACY_SQES ? NPS_F_TRUNCATED : 0;
	if (info.sqe_num > NPS_LEGACY_SQES)
		legacy_count(NPS_COUNTER_SQE_CUT);
	e->sqe.device = c->slot[0];
	e->sqe.count = info.sqe_num;
	e->sqe.reserved = 0;
	e->sqe.queue = info.sq_id;
	e->sqe.reserved2 = 0;
#pragma unroll
	for (__u32 i = 0; i < NPS_LEGACY_SQES; i++) {
		/* A store before the second exit: clang would make one of both, and not unroll the loop. */
		e->flags &= ~NPS_F_SLOT_FAULT(1);
		if (i >= info.sqe_num)
			return;
		e->sqe.index = i;
		if (bpf_probe_read(&e->sqe.sqe, sizeof(e->sqe.sqe), (void *)(info.sqe_addr + i * 64))) {
			e->flags |= NPS_F_SLOT_FAULT(1);
			legacy_count(NPS_COUNTER_FAULT);
		}
		emit(ctx, e);
	}
}

static __always_inline void legacy_send_call(struct pt_regs *ctx, struct legacy_thread *t,
					     struct legacy_call *c, const struct nps_legacy_spec *spec,
					     __u64 pid_tgid, __u64 now)
{
	struct nps_event e;

	e.probe = c->probe;
	e.pid = pid_tgid >> 32;
	e.tid = (__u32)pid_tgid;
	e.ret = (__s32)PT_REGS_RC(ctx);
	e.start = c->start;
	e.dur = now - c->start;
	if (c->probe == NPS_PROBE_SQ_TASK_SEND) {
		legacy_send_sqes(ctx, c, &e);
		return;
	}
	return_slots(ctx, t, pid_tgid >> 32, spec, c);
	e.kind = NPS_EV_API;
	e.flags = c->flags;
	e.call.slot[0] = c->slot[0];
	e.call.slot[1] = c->slot[1];
	e.call.slot[2] = c->slot[2];
	e.call.slot[3] = c->slot[3];
	emit(ctx, &e);
}

SEC("kretprobe/call_return")
int call_return(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns(), pid_tgid = bpf_get_current_pid_tgid();
	__u64 sp = PT_REGS_SP(ctx) - SP_POPPED_BY_RETURN;
	__u32 tid = (__u32)pid_tgid, probe, class, group, found = NPS_LEGACY_DEPTH;
	const struct nps_legacy_spec *spec = spec_of_probe(&probe, &class, &group);
	struct legacy_thread *t;

	if (!spec || !is_target(pid_tgid >> 32, ~0U))
		return 0;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t)
		return 0;
#pragma unroll
	for (__u32 i = 0; i < NPS_LEGACY_DEPTH; i++)
		if (i < t->depth && t->calls[i].probe == probe && t->calls[i].sp == sp)
			found = i; /* the innermost */
	if (found >= NPS_LEGACY_DEPTH)
		return 0; /* entered before we attached, or folded */
	if (found + 1 < t->depth)
		legacy_count(NPS_COUNTER_UNRETURNED);
	t->depth = found;
	legacy_send_call(ctx, t, &t->calls[BOUNDED(found, NPS_LEGACY_DEPTH)], spec, pid_tgid, now);
	return 0;
}

SEC("kprobe/call_mark")
int call_mark(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns(), pid_tgid = bpf_get_current_pid_tgid();
	const struct nps_legacy_spec *spec;
	struct nps_event e;
	struct legacy_thread *t;
	__u8 flags = 0;
	__u32 probe, class, group;

	spec = spec_of_probe(&probe, &class, &group);
	if (!spec || !is_target(pid_tgid >> 32, ~0U))
		return 0;
	legacy_count(NPS_COUNTER_MARKS + class);
	t = thread_of((__u32)pid_tgid);
	if (!t) {
		legacy_count(NPS_COUNTER_LOST + NPS_EV_MARK);
		return 0;
	}
	entry_slots(ctx, t, pid_tgid >> 32, spec, e.call.slot, &flags);
	e.kind = NPS_EV_MARK;
	e.flags = flags;
	e.probe = probe;
	e.pid = pid_tgid >> 32;
	e.tid = (__u32)pid_tgid;
	e.ret = 0;
	e.start = now;
	e.dur = 0;
	emit(ctx, &e);
	return 0;
}

/* --- system calls --- */

SEC("raw_tracepoint/sys_enter")
int BPF_PROG(syscall_entered, struct pt_regs *regs, __u64 nr)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), maps = 0;
	struct legacy_thread *t;

	if (!is_target(pid_tgid >> 32, NPS_TARGET_OSRT))
		return 0;
	t = thread_of((__u32)pid_tgid);
	if (!t) {
		legacy_count(NPS_COUNTER_LOST + NPS_EV_SYSCALL);
		return 0;
	}
	t->syscall = nr;
	if (nr == NPS_NR_MMAP)
		bpf_probe_read(&maps, sizeof(maps), (void *)&PT_REGS_PARM3(regs));
	t->maps = maps;
	t->syscall_start = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tracepoint/sys_exit")
int BPF_PROG(syscall_returned, struct pt_regs *regs, __s64 ret)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)pid_tgid;
	struct legacy_thread *t;
	struct nps_event e;

	if (!is_target(pid_tgid >> 32, NPS_TARGET_OSRT))
		return 0;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t || !t->syscall_start)
		return 0; /* entered before we attached */
	e.kind = NPS_EV_SYSCALL;
	/*
	 * Arguments are not recorded: to decode them exceeds the limits of these kernels. But mappings of
	 * code are, because they show that a library may have been loaded.
	 */
	e.flags = NPS_F_SLOT_FAULT(0) | NPS_F_SLOT_FAULT(1) | NPS_F_SLOT_FAULT(2);
	e.nr = t->syscall;
	e.pid = pid_tgid >> 32;
	e.tid = tid;
	e.ret = (__s32)ret;
	e.start = t->syscall_start;
	e.dur = bpf_ktime_get_ns() - t->syscall_start;
	e.syscall.arg[0] = e.syscall.arg[1] = 0;
	e.syscall.arg[2] = t->maps & NPS_PROT_EXEC;
	e.syscall.result = ret;
	t->syscall_start = 0;
	emit(ctx, &e);
	return 0;
}

/* --- the end of threads --- */

SEC("raw_tracepoint/sched_process_exit")
int thread_exited(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 pid = pid_tgid >> 32, tid = (__u32)pid_tgid;
	struct nps_event e;

	bpf_map_delete_elem(&threads, &tid);
	/* The exit of the first thread ends the process, unless other threads outlive it. */
	if (tid != pid || !is_target(pid, ~0U))
		return 0;
	e.kind = NPS_EV_PROC;
	e.flags = 0;
	e.what = NPS_PROC_EXIT;
	e.pid = pid;
	e.tid = tid;
	e.parent = 0;
	e.start = bpf_ktime_get_ns();
	e.born = 0;
	e.proc = (struct nps_event_proc){ .exit_code = NPS_EXIT_UNKNOWN };
	bpf_get_current_comm(e.proc.comm, sizeof(e.proc.comm));
	emit(ctx, &e);
	return 0;
}
