// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * CANN calls. One pair of handlers serves every probe of the catalogue: the attach cookie identifies the
 * row, the row defines what to read.
 *
 * A call is kept in its thread's stack of open calls from entry to return and becomes one record at return.
 * Entry and return are paired by stack pointer, so that a call that never returns (longjmp, exception)
 * affects no other call.
 */
#include "common.bpf.h"
#include "arguments.bpf.h"
#include "call_stack.bpf.h"
#include "catalog.h"
#include "cookie.bpf.h"
#include "ending.bpf.h"
#include "mstx.bpf.h"
#include "operators.bpf.h"
#include "python_calls.bpf.h"
#include "streams.bpf.h"
#include "text.bpf.h"
#include "torch_memory.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern bool bpf_session_is_return(void) __ksym __weak;

struct thread_state {
	struct call_stack stack;
	struct text_scratch text;
	/* --record-shapes */
	__u64 executor_at; /* where the first phase writes its executor, 0: in none */
	__u16 tensor_records; /* number written, lost ones included */
	__u64 devices; /* bit d: the reader was woken for device d */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

static const struct thread_state no_thread_state = {};

/* Needed where the map is a hash. */
SEC("raw_tp/sched_process_exit")
int thread_ended(struct bpf_raw_tracepoint_args *ctx)
{
	local_forget(&threads);
	local_forget(&python_threads);
	return 0;
}

#if defined(__TARGET_ARCH_x86)
#define SP_POPPED_BY_RETURN 8 /* ret pops the return address */
#else
#define SP_POPPED_BY_RETURN 0
#endif

static __always_inline void fault(__u8 *flags, int slot)
{
	*flags |= NPS_F_SLOT_FAULT(slot);
	count_up(NPS_COUNTER_FAULT);
}

/* Id of the text at ADDRESS, for slot I; no text has id 0. */
static __always_inline __u64 entry_text(struct thread_state *st, __u32 pid, __u64 address, __u8 *flags, int i)
{
	__u64 id = text_intern(&st->text, pid, address);

	/* A literal whose page is not in memory yet: a probe must not wait for it, the reader can. */
	if (!id)
		fault(flags, i);
	return id ? id : address;
}

/* Arguments at entry; OUT slots keep the pointer until the return. */
static __always_inline void read_entry_slots(struct pt_regs *ctx, struct thread_state *st, __u32 pid,
					     const struct probe_spec *spec, __u64 operator, __u64 * slot,
					     __u8 *flags)
{
	struct arguments a;

	load_arguments(ctx, &a);
	for (int i = 0; i < 4; i++) {
		__u8 how = spec->slot[i].how;
		__u64 v = 0, to = 0;
		bool lost = false;
		__u32 size = 8;

		if (how == NPS_SLOT_PROBE)
			v = operator;
		else if (how != NPS_SLOT_NONE && how != NPS_SLOT_RESULT)
			v = call_argument(&a, spec->slot[i].arg, &lost);
		if (lost)
			fault(flags, i);
		if (v)
			v += spec->slot[i].offset;
		switch (v ? how : NPS_SLOT_NONE) {
		case NPS_SLOT_IN32:
			size = 4;
			/* fall through */
		case NPS_SLOT_IN64:
		case NPS_SLOT_TEXT_PTR:
			if (bpf_probe_read_user(&to, size, (void *)v))
				fault(flags, i);
			v = to;
			if (v && how == NPS_SLOT_TEXT_PTR)
				v = entry_text(st, pid, v, flags, i);
			break;
		case NPS_SLOT_TEXT_SIZED:
			/* The struct of an older caller ends before the text. */
			if (bpf_probe_read_user(&to, sizeof(to), (void *)(v - spec->slot[i].offset)))
				fault(flags, i);
			if (to < spec->slot[i].offset + NPS_STR_MAX) {
				v = 0;
				break;
			}
			/* fall through */
		case NPS_SLOT_STR:
		case NPS_SLOT_TEXT_IN:
			v = entry_text(st, pid, v, flags, i);
			break;
		}
		slot[i] = v;
	}
}

static __always_inline void read_return_slots(struct pt_regs *ctx, struct thread_state *st, __u32 pid,
					      const struct probe_spec *spec, __u64 *slot, __u8 *flags)
{
	for (int i = 0; i < 4; i++) {
		__u64 v = 0;
		__u32 v32 = 0;
		long err = 0;

		if (spec->slot[i].how == NPS_SLOT_RESULT)
			slot[i] = PT_REGS_RC(ctx);
		if (!slot[i])
			continue; /* the job passed NULL, or the address is not known */
		switch (spec->slot[i].how) {
		case NPS_SLOT_OUT64:
			err = bpf_probe_read_user(&v, sizeof(v), (void *)slot[i]);
			break;
		case NPS_SLOT_OUT32:
			err = bpf_probe_read_user(&v32, sizeof(v32), (void *)slot[i]);
			v = v32;
			break;
		case NPS_SLOT_OUTSTR:
			v = text_intern(&st->text, pid, slot[i]);
			err = v ? 0 : -1;
			break;
		default:
			continue;
		}
		if (err)
			fault(flags, i);
		slot[i] = v;
	}
}

static __always_inline struct thread_state *thread_state(void)
{
	return local_get(&threads, &no_thread_state);
}

/* The argument of halSqTaskSend (cann-abi: struct halTaskSendInfo, 64 bytes). */
struct task_send_info {
	__s32 type;
	__u32 ts_id, sq_id;
	__s32 timeout;
	__u64 sqe_addr;
	__u32 sqe_num, pos;
};

/* NPS_LEARN_*, where a tracepoint of the driver is attached. */
volatile __u32 learns = 0;
/* A process submitted whose queues and streams cannot be learnt. */
volatile bool container_submits = false;

static __always_inline void own_stream(__u32 device, const struct queue_owner *owner)
{
	__u32 key = STREAM_KEY(device, owner->stream), *known;

	if (!(learns & NPS_LEARN_STREAMS))
		return;
	known = bpf_map_lookup_elem(&stream_owners, &key);
	if (!known || *known != owner->pid)
		bpf_map_update_elem(&stream_owners, &key, &owner->pid, BPF_ANY);
}

/*
 * Records the new owner of the queue, and the stream that is submitted to through it: one at a time.
 * OWNER->pid 0: none. *BEFORE receives the previous owner. Returns 1; 0 if nothing changed; -1 if there is
 * no room: then CQEs may be missing unnoticed, like all that the tracepoints cannot attribute.
 */
static __always_inline int own_queue(__u32 device, __u32 queue, const struct queue_owner *owner,
				     struct queue_owner *before)
{
	__u32 key = STREAM_KEY(device, queue), stream, *known;
	struct queue_owner *was = bpf_map_lookup_elem(&queue_owners, &key);

	before->pid = was ? was->pid : 0;
	before->stream = was ? was->stream : 0;
	if (!owner->pid && !before->pid)
		return 0;
	if (before->pid == owner->pid && before->stream == owner->stream) {
		own_stream(device, owner); /* the end of another queue may have removed it */
		return 0;
	}
	if (before->pid) {
		stream = STREAM_KEY(device, before->stream);
		known = bpf_map_lookup_elem(&stream_owners, &stream);
		if (known && *known == before->pid)
			bpf_map_delete_elem(&stream_owners, &stream);
	}
	if (!owner->pid) {
		bpf_map_delete_elem(&queue_owners, &key);
		return 1;
	}
	if (bpf_map_update_elem(&queue_owners, &key, owner, BPF_ANY))
		return -1;
	own_stream(device, owner);
	return 1;
}

#define NORMAL_TYPE 0 /* type of a queue; the other types have numbers of their own */

/*
 * Called before the SQEs are sent, because the driver can have them all before the call returns. The SQEs
 * of a call go to one queue, so to one stream.
 */
static __always_inline void learn(__u32 pid, struct open_call *c)
{
	struct queue_owner owner = { .pid = pid }, before = {};
	struct task_send_info info;
	struct nps_sqe_head head = {};
	int changed;

	if (in_container()) {
		container_submits = true;
		return;
	}
	if (bpf_probe_read_user(&info, sizeof(info), (void *)c->transfer.info) || info.type != NORMAL_TYPE ||
	    bpf_probe_read_user(&head, __builtin_offsetof(struct nps_sqe_head, rest), (void *)info.sqe_addr))
		return; /* a fault is counted when the call returns */
	owner.stream = head.stream;
	changed = own_queue(c->transfer.device, info.sq_id, &owner, &before);
	if (changed < 0 && learns & NPS_LEARN_QUEUES)
		count_some(NPS_COUNTER_LOST + NPS_EV_DRIVER_TASK, info.sqe_num & 0xffff);
	if (changed > 0)
		c->transfer.change = (struct queue_change){ .pid = before.pid,
							    .stream = before.stream,
							    .queue = info.sq_id,
							    .new_stream = owner.stream,
							    .changed = true };
}

/* The call failed: restores the queue's previous owner, unless another call has changed it since. */
static __always_inline void unlearn(__u32 pid, const struct open_call *c)
{
	const struct queue_change *change = &c->transfer.change;
	struct queue_owner owner = { .pid = change->pid, .stream = change->stream }, before;
	__u32 key = STREAM_KEY(c->transfer.device, change->queue);
	struct queue_owner *now = bpf_map_lookup_elem(&queue_owners, &key);

	if (change->changed && now && now->pid == pid && now->stream == change->new_stream)
		own_queue(c->transfer.device, change->queue, &owner, &before);
}

/*
 * halSqCqFree: the driver may reuse the queue for another process. If it frees something other than a
 * queue, the number has no meaning here.
 */
static __always_inline void forget_queue(__u32 pid, const struct open_call *c)
{
	__u32 device = c->slot[0], queue = c->slot[1], type = c->slot[2], key = STREAM_KEY(device, queue);
	struct queue_owner *owner = bpf_map_lookup_elem(&queue_owners, &key), nobody = {}, before;

	if (c->flags & (NPS_F_SLOT_FAULT(1) | NPS_F_SLOT_FAULT(2)) || type != NORMAL_TYPE || !owner ||
	    owner->pid != pid || in_container())
		return;
	own_queue(device, queue, &nobody, &before);
}

/* Returns 1 when the return of this call need not be probed. */
static __always_inline int remember_call(struct pt_regs *ctx, __u16 probe, __u16 group, __u32 pid)
{
	struct thread_state *st = thread_state();
	struct open_call *c;
	__u64 sp, python = 0;

	if (!st) {
		count_up(NPS_COUNTER_LOST + NPS_EV_API);
		return 1;
	}
	sp = PT_REGS_SP(ctx);
	count_some(NPS_COUNTER_UNRETURNED, stack_drop_dead(&st->stack, sp, probe));
	if (group_state[MASKED(group, NPS_GROUPS)] != NPS_GROUP_ATTACHED)
		return 1;
	if ((spec_of(probe)->flags & NPS_P_FOLD) && is_covered_above(&st->stack))
		return 1;
	if (is_mstx(probe) && !mstx_wanted(&st->text, probe, pid, PT_REGS_PARM1(ctx)))
		return 1;
	if (st->stack.depth >= NPS_MAX_DEPTH) {
		count_up(NPS_COUNTER_LOST + NPS_EV_API); /* nested too deep */
		return 1;
	}
	c = &st->stack.calls[MASKED(st->stack.depth, NPS_MAX_DEPTH)];
	c->flags = 0;
	c->probe = probe;
	c->sp = sp;
	c->group = group;
	if (walks_python_at(probe))
		python = python_stack(pid, NPS_PY_WALK_CALL);
	read_entry_slots(ctx, st, pid, spec_of(probe), 0, c->slot, &c->flags);
	if (learns && probe == NPS_PROBE_SQ_TASK_SEND)
		learn(pid, c);
	if (probe == NPS_PROBE_MSTX_DOMAIN_CREATE)
		c->wanted = name_wanted(&st->text);
	st->stack.depth++;
	note_npu_call(probe);
	c->start = bpf_ktime_get_ns();
	python_stack_send(python, probe, bpf_get_current_pid_tgid(), c->start);
	return 0;
}

/* SESSION: calls that are not recorded cost no second trap; returns 1 for those. */
static __always_inline int call_entered(struct pt_regs *ctx, __u64 cookie, bool session)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	__u16 probe = NPS_COOKIE_PROBE(cookie);
	__u16 group = NPS_COOKIE_GROUP(cookie);
	int ignored;

	if (probe >= NPS_PROBE_MAX || !target_flags(pid) || ended_at)
		return 1;
	if (group >= NPS_GROUPS_COUNTED)
		__sync_fetch_and_add(&group_entered[MASKED(group, NPS_GROUPS)], 1);
	ignored = remember_call(ctx, probe, group, pid);
	count_up((ignored && session ? NPS_COUNTER_MARKS : NPS_COUNTER_CALLS) + NPS_COOKIE_CLASS(cookie));
	return ignored;
}

static __always_inline void call_send_sqes(struct open_call *c, __u64 now, __u64 pid_tgid, __s32 ret)
{
	struct task_send_info info;
	void *ring = this_ring();
	__u32 n;

	if (bpf_probe_read_user(&info, sizeof(info), (void *)c->transfer.info)) {
		count_up(NPS_COUNTER_FAULT);
		return;
	}
	n = info.sqe_num;
	if (n > NPS_MAX_SQE)
		count_up(NPS_COUNTER_SQE_CUT);
	for (__u32 i = 0; i < NPS_MAX_SQE; i++) {
		struct nps_event *e;

		if (i >= n)
			break;
		e = event_reserve(ring, NPS_EV_SQE);
		if (!e)
			continue;
		e->probe = NPS_PROBE_SQ_TASK_SEND;
		e->pid = pid_tgid >> 32;
		e->tid = (__u32)pid_tgid;
		e->ret = ret;
		e->start = c->start;
		e->dur = now - c->start;
		e->sqe.device = c->transfer.device;
		e->sqe.index = i;
		e->sqe.count = n;
		e->sqe.reserved = 0;
		e->sqe.queue = info.sq_id;
		e->sqe.reserved2 = 0;
		if (n > NPS_MAX_SQE)
			e->flags |= NPS_F_TRUNCATED;
		if (bpf_probe_read_user(&e->sqe.sqe, sizeof(e->sqe.sqe), (void *)(info.sqe_addr + i * 64))) {
			e->sqe.sqe = (struct nps_sqe_head){};
			e->flags |= NPS_F_SLOT_FAULT(1);
			count_up(NPS_COUNTER_FAULT);
		}
		bpf_ringbuf_submit(e, wake_flag(ring));
	}
}

/* The argument of halCqReportRecv, in and out (cann-abi: struct halReportRecvInfo). */
struct report_recv_info {
	__u32 type, ts_id, cq_id;
	__s32 timeout;
	__u64 cqe_addr;
	__u32 cqe_num, report_cqe_num;
};

#define LOGIC_CQ 2 /* the type of the runtime's own queues */
#define CQE_BYTES 32

static __always_inline void send_cqes(struct open_call *c, __u64 now, __u64 pid_tgid, __s32 ret)
{
	struct report_recv_info info;
	void *ring = this_ring();
	__u32 n;

	if (ret)
		return; /* the number of records is that of an earlier call */
	if (bpf_probe_read_user(&info, sizeof(info), (void *)c->transfer.info)) {
		count_up(NPS_COUNTER_FAULT);
		return;
	}
	n = info.report_cqe_num;
	if (info.type != LOGIC_CQ)
		return;
	if (n > NPS_MAX_CQE)
		count_some(NPS_COUNTER_LOST + NPS_EV_CQE, n - NPS_MAX_CQE);
	for (__u32 i = 0; i < NPS_MAX_CQE; i++) {
		struct nps_event *e;

		if (i >= n)
			break;
		e = event_reserve(ring, NPS_EV_CQE);
		if (!e)
			continue;
		e->probe = NPS_PROBE_CQ_REPORT_RECV;
		e->pid = pid_tgid >> 32;
		e->tid = (__u32)pid_tgid;
		e->ret = ret;
		e->start = c->start;
		e->dur = now - c->start;
		e->cqe.device = c->transfer.device;
		e->cqe.index = i;
		e->cqe.count = n;
		e->cqe.reserved = 0;
		if (n > NPS_MAX_CQE)
			e->flags |= NPS_F_TRUNCATED;
		if (bpf_probe_read_user(e->cqe.head, sizeof(e->cqe.head),
					(void *)(info.cqe_addr + i * CQE_BYTES))) {
			__builtin_memset(e->cqe.head, 0, sizeof(e->cqe.head));
			e->flags |= NPS_F_SLOT_FAULT(1);
			count_up(NPS_COUNTER_FAULT);
		}
		bpf_ringbuf_submit(e, wake_flag(ring));
	}
}

#include "shapes.bpf.h"

/*
 * HcclCommInitAll: one record per communicator, the first like that of
 * any call; slot 2 is the record's index.
 */
static __always_inline void send_communicators(struct open_call *c, __u64 now, __u64 pid_tgid)
{
	__u64 n = c->slot[0], array = c->slot[1];
	void *ring = this_ring();

	for (__u32 i = 0; i < NPS_MAX_COMMS; i++) {
		struct nps_event *e;
		__u64 comm = 0;

		if (i >= n)
			break;
		if (bpf_probe_read_user(&comm, sizeof(comm), (void *)(array + i * sizeof(comm))))
			count_up(NPS_COUNTER_FAULT);
		if (i && !comm)
			break;
		e = event_reserve(ring, NPS_EV_API);
		if (!e)
			continue;
		if (!comm)
			e->flags = NPS_F_SLOT_FAULT(1);
		e->probe = c->probe;
		e->pid = pid_tgid >> 32;
		e->tid = (__u32)pid_tgid;
		e->ret = 0;
		e->start = c->start;
		e->dur = now - c->start;
		e->call.slot[0] = (__u32)n;
		e->call.slot[1] = comm;
		e->call.slot[2] = i;
		e->call.slot[3] = 0;
		bpf_ringbuf_submit(e, wake_flag(ring));
	}
}

/* Calls that become records of another kind. */
static __always_inline bool send_special(struct pt_regs *ctx, struct thread_state *st, struct open_call *c,
					 __u64 now, __u64 pid_tgid)
{
	if (learns && c->probe == NPS_PROBE_SQ_TASK_SEND && (__s32)PT_REGS_RC(ctx))
		unlearn(pid_tgid >> 32, c);
	if (c->probe == NPS_PROBE_SQ_TASK_SEND)
		call_send_sqes(c, now, pid_tgid, (__s32)PT_REGS_RC(ctx));
	else if (c->probe == NPS_PROBE_CQ_REPORT_RECV)
		send_cqes(c, now, pid_tgid, (__s32)PT_REGS_RC(ctx));
	else if (c->probe == NPS_PROBE_HCCL_COMM_INIT_ALL && !(__s32)PT_REGS_RC(ctx))
		send_communicators(c, now, pid_tgid);
	else if (with_shapes && c->probe == NPS_PROBE_CREATE_TENSOR)
		send_tensor(st, c, PT_REGS_RC(ctx));
	else if (with_shapes && c->probe == NPS_PROBE_CREATE_TENSOR_LIST)
		send_list(st, c, PT_REGS_RC(ctx));
	else
		return false;
	return true;
}

/* The name may not have been in memory at entry; by the return the call has read it. */
static __always_inline void domain_made(struct thread_state *st, struct open_call *c, __u32 pid)
{
	__u64 name;

	if (c->flags & NPS_F_SLOT_FAULT(0)) {
		name = text_intern(&st->text, pid, c->slot[0]);
		if (name) {
			c->slot[0] = name;
			c->flags &= ~NPS_F_SLOT_FAULT(0);
			c->wanted = name_wanted(&st->text);
		}
	}
	domain_remember(pid, c->slot[1], c->slot[0], c->wanted);
}

/*
 * Does the reader have to know at once? Only of a thread's first use of a device: threads may select theirs
 * before each launch, and a wake-up costs more than everything else here.
 */
static __always_inline bool is_urgent(struct thread_state *st, const struct open_call *c)
{
	__u64 device = 1ULL << (c->slot[0] & 63);

	if (!(spec_of(c->probe)->flags & NPS_P_KICK) || st->devices & device)
		return false;
	st->devices |= device;
	return true;
}

static __always_inline void call_send(struct pt_regs *ctx, struct thread_state *st, struct open_call *c,
				      __u64 now, __u64 pid_tgid)
{
	__u16 probe = c->probe;
	struct nps_event *e;
	void *ring;

	if (probe >= NPS_PROBE_MAX)
		return;
	read_return_slots(ctx, st, pid_tgid >> 32, spec_of(probe), c->slot, &c->flags);
	if (probe == NPS_PROBE_MSTX_DOMAIN_CREATE)
		domain_made(st, c, pid_tgid >> 32);
	if (learns && probe == NPS_PROBE_SQ_FREE && !(__s32)PT_REGS_RC(ctx))
		forget_queue(pid_tgid >> 32, c);
	ring = this_ring();
	e = event_reserve(ring, NPS_EV_API);
	if (!e)
		return;
	e->flags = c->flags;
	e->probe = probe;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = (__s32)PT_REGS_RC(ctx);
	e->start = c->start;
	e->dur = now - c->start;
	for (int i = 0; i < 4; i++)
		e->call.slot[i] = c->slot[i];
	bpf_ringbuf_submit(e, is_urgent(st, c) ? BPF_RB_FORCE_WAKEUP : wake_flag(ring));
}

static __always_inline int call_returned(struct pt_regs *ctx, __u16 probe)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct thread_state *st;
	__u64 sp = PT_REGS_SP(ctx) - SP_POPPED_BY_RETURN;
	struct open_call *c;

	if (!ended_at && !target_flags(pid_tgid >> 32)) /* the targets are empty once the capture has ended */
		return 0;
	st = local_find(&threads);
	c = st ? find_call(&st->stack, sp, probe) : 0;
	if (!c)
		return 0;
	if (ended_at) {
		c->sp = NPS_OUTLASTED;
		return 0;
	}
	count_some(NPS_COUNTER_UNRETURNED, st->stack.passed);
	if (!send_special(ctx, st, c, now, pid_tgid))
		call_send(ctx, st, c, now, pid_tgid);
	st->stack.depth = st->stack.found;
	return 0;
}

/* uprobe session link: entry and return with one attachment. User space sets the attach type. */
SEC("uprobe")
int call_session(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx);

	if (bpf_session_is_return())
		return call_returned(ctx, NPS_COOKIE_PROBE(cookie));
	return call_entered(ctx, cookie, true);
}

SEC("uprobe")
int call_entry(struct pt_regs *ctx)
{
	call_entered(ctx, cookie_of(ctx), false);
	return 0;
}

SEC("uretprobe")
int call_return(struct pt_regs *ctx)
{
	return call_returned(ctx, NPS_COOKIE_PROBE(cookie_of(ctx)));
}

/*
 * halSqTaskSend where its return is not probed: the SQEs are complete at
 * entry. Its duration and result are unknown.
 */
static __always_inline void submission_entered(struct pt_regs *ctx, __u64 now, __u64 pid_tgid)
{
	struct open_call c = { .start = now,
			       .transfer = { .device = PT_REGS_PARM1(ctx), .info = PT_REGS_PARM2(ctx) } };

	call_send_sqes(&c, now, pid_tgid, 0);
}

/*
 * Entry-only probes: functions that an exception may leave, and functions whose return has nothing to record.
 */
SEC("uprobe")
int call_mark(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();
	__u16 probe = NPS_COOKIE_PROBE(cookie);
	__u64 slot[4];
	struct thread_state *st;
	struct nps_event *e;
	__u8 flags = 0;
	void *ring;

	if (probe >= NPS_PROBE_MAX || !target_flags(pid_tgid >> 32))
		return 0;
	count_up(NPS_COUNTER_MARKS + NPS_COOKIE_CLASS(cookie));
	note_npu_call(probe);
	if (probe == NPS_PROBE_SQ_TASK_SEND) {
		if (!ended_at)
			submission_entered(ctx, now, pid_tgid);
		return 0;
	}
	st = thread_state();
	if (!st) {
		count_up(NPS_COUNTER_LOST + NPS_EV_MARK);
		return 0;
	}
	if (is_mstx(probe) && !mstx_wanted(&st->text, probe, pid_tgid >> 32, PT_REGS_PARM1(ctx)))
		return 0;
	read_entry_slots(ctx, st, pid_tgid >> 32, spec_of(probe), NPS_COOKIE_NUMBER(cookie), slot, &flags);
	if (with_shapes && probe == NPS_PROBE_NN_PHASE1)
		remember_executor(st, slot[1]);
	if (walks_python_at(probe))
		python_stack_send(python_stack(pid_tgid >> 32, NPS_PY_WALK_MARK), probe, pid_tgid, now);
	ring = this_ring();
	e = event_reserve(ring, NPS_EV_MARK);
	if (!e)
		return 0;
	e->flags = flags;
	e->probe = probe;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = 0;
	e->start = now;
	e->dur = 0;
	for (int i = 0; i < 4; i++)
		e->call.slot[i] = slot[i];
	bpf_ringbuf_submit(e, wake_flag(ring));
	return 0;
}

/* --record-shapes: a first phase is entered, or its caller is done with it. */
SEC("uprobe")
int operands(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx);
	__u16 probe = NPS_COOKIE_PROBE(cookie);
	struct thread_state *st;

	if (!target_flags(bpf_get_current_pid_tgid() >> 32))
		return 0;
	count_up(NPS_COUNTER_MARKS + NPS_COOKIE_CLASS(cookie));
	st = thread_state();
	if (!st)
		count_up(NPS_COUNTER_LOST + NPS_EV_TENSOR);
	else if (probe == NPS_PROBE_NN_OPERANDS)
		send_operands(ctx, st, NPS_COOKIE_NUMBER(cookie), NPS_COOKIE_ARGUMENTS(cookie));
	else
		send_executor(st);
	return 0;
}

/* The calls that a thread is in at the end. They have no results yet; the collector removes those slots. */
SEC("iter/task")
int open_calls(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct thread_state *st = t ? local_of(&threads, t) : NULL;
	__u64 sp;

	if (!st || !st->stack.depth || is_exiting(t))
		return 0;
	sp = user_stack_pointer(t);
	for (__u32 i = 0; i < NPS_MAX_DEPTH; i++) {
		struct open_call *c = &st->stack.calls[MASKED(i, NPS_MAX_DEPTH)];
		struct nps_event e = { .kind = NPS_EV_API, .ret = -1 };

		if (i >= st->stack.depth)
			break;
		if (c->start >= ended_at || was_left(c->sp, sp) || call_is_detached(c))
			continue;
		e.probe = c->probe;
		e.flags = c->flags;
		for (int slot = 0; slot < 4; slot++)
			e.call.slot[slot] = c->slot[slot];
		report_open(ctx, t, &e, c->start);
	}
	return 0;
}
