/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * PyTorch's operators and the nodes of its backward pass: C++ functions, which exceptions may cross, probed
 * at their entry and in front of each of their returns. One record a call, written when its end is seen.
 * Labels of record_function() are objects; a function begins one, and another one ends it.
 */
#ifndef NPS_OPERATORS_BPF_H
#define NPS_OPERATORS_BPF_H

#include "cookie.bpf.h"
#include "ending.bpf.h"
#include "local.bpf.h"
#include "op_inputs.bpf.h"
#include "op_stack.bpf.h"
#include "python_calls.bpf.h"
#include "text.bpf.h"

const volatile __u8 ops = NPS_OPS_NONE; /* which are recorded */

#define LABELS 32 /* that a thread has opened and not closed */

struct op_state {
	struct op_stack stack;
	struct open_op labels[LABELS]; /* probe 0: closed before those around it */
	__u32 n_labels;
	__u32 free_label; /* that the next one gets */
	__u64 label; /* text of the one that is being opened, whose object is not made yet; 0: none */
	__u32 npu_calls; /* of the thread, so that those within an operator are known */
	struct text_scratch text;
	struct input_state inputs;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct op_state);
} op_threads SEC(".maps");

static const struct op_state no_op_state = {};

/* Does a call of PROBE give the NPU work, or wait for it? */
static __always_inline bool is_npu_call(__u16 probe)
{
	switch (spec_of(probe)->call) {
	case NPS_CALL_LAUNCH:
	case NPS_CALL_MEMCPY:
	case NPS_CALL_COLLECTIVE:
	case NPS_CALL_SYNC_DEVICE:
	case NPS_CALL_SYNC_STREAM:
	case NPS_CALL_SYNC_EVENT:
		return true;
	}
	return probe == NPS_PROBE_TORCH_ENQUEUE || probe == NPS_PROBE_NN_PHASE1 ||
	       probe == NPS_PROBE_NN_PHASE2 || probe == NPS_PROBE_NN_EXPORT;
}

/* --ops npu: the operators that the thread is in reach the NPU. */
static __always_inline void note_npu_call(__u16 probe)
{
	struct op_state *st;

	if (ops != NPS_OPS_NPU || !is_npu_call(probe))
		return;
	st = local_find(&op_threads);
	if (st)
		st->npu_calls++;
}

static __always_inline bool is_op_wanted(const struct op_state *st, const struct open_op *op)
{
	return ops != NPS_OPS_NPU || st->npu_calls != op->npu_calls;
}

static __always_inline void op_send(const struct open_op *op, __u64 pid_tgid, __u64 end, __u8 how)
{
	void *ring = this_ring();
	struct nps_event *e = event_reserve(ring, NPS_EV_API);

	if (!e)
		return;
	e->flags = op->flags | how | NPS_F_NO_RESULT;
	e->probe = op->probe;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = 0;
	e->start = op->start;
	e->dur = end - op->start;
	for (int i = 0; i < 4; i++)
		e->call.slot[i] = op->slot[i];
	bpf_ringbuf_submit(e, wake_flag(ring));
}

/* Calls above DEPTH were left by an exception, longjmp, or the end of the thread, at the latest now. */
static __always_inline void ops_unwind(struct op_state *state, __u32 depth, __u64 pid_tgid, __u64 now)
{
	struct op_stack *st = &state->stack;

	for (int i = 0; i < OP_DEPTH; i++) {
		__u32 top = st->depth - 1;
		const struct open_op *op;

		if (top >= OP_DEPTH || top < depth)
			break;
		op = &st->ops[MASKED(top, OP_DEPTH)];
		if (!probes_are_detached(op->group)) {
			count_up(NPS_COUNTER_UNRETURNED);
			if (is_op_wanted(state, op))
				op_send(op, pid_tgid, now, NPS_F_UNWOUND);
		}
		st->depth = top;
	}
}

/*
 * A node of the backward pass, argument 3 of Engine::evaluate_function(): its type's name from the
 * type_info in front of its virtual table, as all compilers for these processors lay it out, and its
 * sequence number, which is at a distance that depends on the version.
 */
static __always_inline void read_node(struct text_scratch *text, struct open_op *op, __u64 node, __u32 pid,
				      __u32 sequence_at)
{
	__u64 at = 0;

	op->slot[2] = node;
	if (!sequence_at ||
	    bpf_probe_read_user(&op->slot[1], sizeof(op->slot[1]), (void *)(node + sequence_at))) {
		op->slot[1] = ~0ULL; /* 0 is that of a thread's first node */
		op->flags |= NPS_F_SLOT_FAULT(1);
	}
	if (bpf_probe_read_user(&at, sizeof(at), (void *)node) ||
	    bpf_probe_read_user(&at, sizeof(at), (void *)(at - 8)) ||
	    bpf_probe_read_user(&at, sizeof(at), (void *)(at + 8)))
		op->flags |= NPS_F_SLOT_FAULT(0);
	else
		op->slot[0] = text_intern(text, pid, at);
	if (!op->slot[0])
		op->flags |= NPS_F_SLOT_FAULT(0);
}

#if defined(__TARGET_ARCH_x86)
/* A return probe of another tool replaces return addresses by that of the kernel's trampoline. */
static __always_inline bool is_trampoline(__u64 address)
{
	struct task_struct *t = this_task();

	if (!bpf_core_field_exists(((struct mm_struct *)0)->uprobes_state) ||
	    !bpf_core_field_exists(((struct xol_area *)0)->vaddr))
		return true; /* not known: do not conclude anything */
	return address == BPF_CORE_READ(t, mm, uprobes_state.xol_area, vaddr);
}

/*
 * The innermost open calls whose return address is not on the stack any more were left by an exception whose
 * handler has called something deeper since. st->found as of ops_at_entry(). A call whose return address was
 * not overwritten yet is taken for open: its stack pointer closes it later.
 */
static __always_inline void ops_check(struct op_stack *st)
{
	for (int i = 0; i < OP_DEPTH; i++) {
		__u32 top = st->found - 1;
		const struct open_op *op;
		__u64 now = 0;

		if (top >= OP_DEPTH)
			break;
		op = &st->ops[MASKED(top, OP_DEPTH)];
		if (!op->return_address || bpf_probe_read_user(&now, sizeof(now), (void *)op->sp) ||
		    now == op->return_address || is_trampoline(now))
			break;
		st->found = top;
	}
}

static __always_inline __u64 return_address(__u64 sp)
{
	__u64 address = 0;

	bpf_probe_read_user(&address, sizeof(address), (void *)sp);
	return address;
}
#else
static __always_inline void ops_check(struct op_stack *st)
{
	(void)st; /* the return address is in a register first, then anywhere in the frame */
}

static __always_inline __u64 return_address(__u64 sp)
{
	(void)sp;
	return 0;
}
#endif

__noinline int op_input(__u32 i, __u32 input, __u32 layout, __u64 start)
{
	struct op_state *st = local_find(&op_threads);
	__u32 how = NPS_OP_INPUT_HOW(input), slot = NPS_OP_INPUT_SLOT(input), flag = NPS_OP_INPUT_FLAG(input);
	enum nps_op_input what = NPS_OP_INPUT_WHAT(input);
	__u64 value, next = 0;
	bool lost = false;

	if (!with_inputs || !st)
		return NPS_OP_INPUT_UNKNOWN;
	if (how == NPS_HOW_FIXED)
		return what;
	value = input_slot(&st->inputs, slot, &lost);
	if (how == NPS_HOW_ARRAY)
		next = input_slot(&st->inputs, slot + 1, &lost);
	if (lost)
		return NPS_OP_INPUT_UNKNOWN;
	if (how == NPS_HOW_ARRAY)
		return !value && next ? NPS_OP_INPUT_NONE : what;
	if (how == NPS_HOW_FLAG)
		return by_flag(value >> 8 * (flag & 7), what);
	if (how == NPS_HOW_FLAG_AT)
		return by_flag(flag_at(value + flag), what);
	if (how == NPS_HOW_OPTIONAL_TENSOR) {
		what = by_flag(flag_at(value + flag), NPS_OP_INPUT_TENSOR);
		if (what != NPS_OP_INPUT_TENSOR)
			return what;
		value += flag ? 0 : 8;
	}
	if (bpf_probe_read_user(&value, sizeof(value), (void *)value)) {
		count_up(NPS_COUNTER_FAULT);
		return NPS_OP_INPUT_UNKNOWN;
	}
	return input_tensor(&st->inputs, i, value, layout, start);
}

SEC("uprobe")
int op_entry(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx), pid_tgid = bpf_get_current_pid_tgid();
	__u16 group = NPS_COOKIE_GROUP(cookie);
	__u64 now = bpf_ktime_get_ns(), sp = PT_REGS_SP(ctx);
	struct op_state *st;
	struct open_op *op;

	if (!target_flags(pid_tgid >> 32) || ended_at)
		return 0;
	count_up(NPS_COUNTER_MARKS + NPS_COOKIE_CLASS(cookie));
	st = local_get(&op_threads, &no_op_state);
	if (!st) {
		count_up(NPS_COUNTER_LOST + NPS_EV_API);
		return 0;
	}
	ops_at_entry(&st->stack, sp);
	ops_check(&st->stack);
	ops_unwind(st, st->stack.found, pid_tgid, now);
	if (group_state[MASKED(group, NPS_GROUPS)] != NPS_GROUP_ATTACHED)
		return 0;
	if (st->stack.depth >= OP_DEPTH) {
		count_up(NPS_COUNTER_LOST + NPS_EV_API); /* nested too deep */
		return 0;
	}
	op = &st->stack.ops[MASKED(st->stack.depth, OP_DEPTH)];
	op->probe = NPS_COOKIE_PROBE(cookie);
	op->number = NPS_COOKIE_NUMBER(cookie);
	op->group = group;
	op->sp = sp;
	op->return_address = return_address(sp);
	op->npu_calls = st->npu_calls;
	op->flags = 0;
	op->outlasted = false;
	op->slot[0] = op->number;
	op->slot[1] = op->slot[2] = op->slot[3] = 0;
	if (op->probe == NPS_PROBE_TORCH_NODE) {
		op->slot[0] = 0;
		read_node(&st->text, op, PT_REGS_PARM3(ctx), pid_tgid >> 32, NPS_COOKIE_ARGUMENTS(cookie));
	} else {
		if (python_at & NPS_PY_AT_OP)
			op->slot[1] = python_stack(pid_tgid >> 32, NPS_PY_WALK_MARK);
		if (with_inputs && NPS_COOKIE_ARGUMENTS(cookie))
			op_read_inputs(ctx, &st->inputs, op->slot, op->number, NPS_COOKIE_ARGUMENTS(cookie),
				       now);
	}
	op->start = bpf_ktime_get_ns(); /* without the time that this took */
	st->stack.depth++;
	return 0;
}

SEC("uprobe")
int op_end(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx), pid_tgid = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();
	struct op_state *st;
	struct open_op *op;

	if (!ended_at && !target_flags(pid_tgid >> 32)) /* the targets are empty once the capture has ended */
		return 0;
	st = local_find(&op_threads);
	if (!ended_at)
		count_up(NPS_COUNTER_MARKS + NPS_COOKIE_CLASS(cookie));
	if (!st)
		return 0;
	ops_at_end(&st->stack, PT_REGS_SP(ctx), NPS_COOKIE_PROBE(cookie), NPS_COOKIE_NUMBER(cookie));
	if (st->stack.found >= OP_DEPTH)
		return 0;
	op = &st->stack.ops[MASKED(st->stack.found, OP_DEPTH)];
	if (ended_at) {
		op->outlasted = true;
		return 0;
	}
	ops_unwind(st, st->stack.found + 1, pid_tgid, now);
	if (is_op_wanted(st, op))
		op_send(op, pid_tgid, now, 0);
	st->stack.depth = st->stack.found;
	return 0;
}

/*
 * The text of the label that record_function() is called with: its first parameter, a std::string, behind
 * the address of its result, which arm64 has in a register of its own. All layouts of std::string begin with
 * the address of the text.
 */
static __always_inline __u64 label_text(struct op_state *st, struct pt_regs *ctx, __u32 pid)
{
	__u64 text = 0;
#if defined(__TARGET_ARCH_x86)
	__u64 string = PT_REGS_PARM2(ctx);
#else
	__u64 string = PT_REGS_PARM1(ctx);
#endif

	if (bpf_probe_read_user(&text, sizeof(text), (void *)string))
		return 0;
	return text_intern(&st->text, pid, text);
}

#define USER_SCOPE 7 /* at::RecordScope */

/* The object of the label that is being opened. */
static __always_inline void label_open(struct op_state *st, __u64 object, __u32 pid, __u16 group)
{
	struct open_op *op;

	st->free_label = st->n_labels;
	for (__u32 i = 0; i < LABELS; i++) {
		if (i >= st->n_labels)
			break;
		op = &st->labels[MASKED(i, LABELS)];
		/* An object at the same address: another thread has ended that one. */
		if (!op->probe || op->slot[2] == object) {
			st->free_label = i;
			break;
		}
	}
	if (st->free_label >= LABELS) {
		count_up(NPS_COUNTER_LOST + NPS_EV_API);
		return;
	}
	op = &st->labels[MASKED(st->free_label, LABELS)];
	op->probe = NPS_PROBE_TORCH_LABEL;
	op->number = 0;
	op->group = group;
	op->flags = 0;
	op->slot[0] = st->label;
	op->slot[1] = python_at & NPS_PY_AT_OP ? python_stack(pid, NPS_PY_WALK_MARK) : 0;
	op->slot[2] = object;
	op->slot[3] = 0;
	if (st->free_label == st->n_labels)
		st->n_labels++;
	op->start = bpf_ktime_get_ns(); /* without the time that this took */
}

/* An object of PyTorch ends: at once if it is a label that this thread has open. */
static __always_inline void label_close(struct op_state *st, __u64 object, __u64 pid_tgid, __u64 now)
{
	for (int i = 0; i < LABELS; i++) {
		__u32 at = st->n_labels - 1 - i;
		struct open_op *op;

		if (at >= LABELS)
			break;
		op = &st->labels[MASKED(at, LABELS)];
		if (!op->probe || op->slot[2] != object)
			continue;
		if (!probes_are_detached(op->group))
			op_send(op, pid_tgid, now, 0);
		op->probe = 0;
		break;
	}
	for (int i = 0; i < LABELS; i++) {
		__u32 top = st->n_labels - 1;

		if (top >= LABELS || st->labels[MASKED(top, LABELS)].probe)
			break;
		st->n_labels = top;
	}
}

SEC("uprobe")
int op_label(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx), pid_tgid = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	__u16 group = NPS_COOKIE_GROUP(cookie), probe = NPS_COOKIE_PROBE(cookie);
	__u32 pid = pid_tgid >> 32;
	struct op_state *st;

	if (!target_flags(pid) || ended_at)
		return 0;
	count_up(NPS_COUNTER_MARKS + NPS_COOKIE_CLASS(cookie));
	st = probe == NPS_PROBE_TORCH_LABEL ? local_get(&op_threads, &no_op_state) : local_find(&op_threads);
	if (!st) {
		if (probe == NPS_PROBE_TORCH_LABEL)
			count_up(NPS_COUNTER_LOST + NPS_EV_API);
		return 0;
	}
	if (probe == NPS_PROBE_TORCH_RECORD_END) {
		if (st->n_labels)
			label_close(st, PT_REGS_PARM1(ctx), pid_tgid, now);
		return 0;
	}
	if (group_state[MASKED(group, NPS_GROUPS)] != NPS_GROUP_ATTACHED)
		return 0;
	if (probe == NPS_PROBE_TORCH_LABEL) {
		st->label = label_text(st, ctx, pid);
	} else if (st->label && (__u8)PT_REGS_PARM2(ctx) == USER_SCOPE) {
		label_open(st, PT_REGS_PARM1(ctx), pid, group);
		st->label = 0;
	}
	return 0;
}

static __always_inline void labels_left(struct op_state *st, __u64 pid_tgid, __u64 now)
{
	for (__u32 i = 0; i < LABELS; i++) {
		const struct open_op *op = &st->labels[MASKED(i, LABELS)];

		if (i >= st->n_labels)
			break;
		if (op->probe && !probes_are_detached(op->group))
			op_send(op, pid_tgid, now, NPS_F_UNWOUND);
	}
	st->n_labels = 0;
}

/* A thread that exits, or is cancelled, leaves its calls. */
SEC("raw_tp/sched_process_exit")
int op_thread_ended(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct op_state *st = local_find(&op_threads);

	if (st && target_flags(pid_tgid >> 32) && !ended_at) {
		__u64 now = bpf_ktime_get_ns();

		ops_unwind(st, 0, pid_tgid, now);
		labels_left(st, pid_tgid, now);
	}
	local_forget(&op_threads);
	return 0;
}

/* A call of thread T, or a label, that has not ended. */
static __always_inline void open_operator_write(struct bpf_iter__task *ctx, const struct task_struct *t,
						const struct open_op *op)
{
	struct nps_event e = { .kind = NPS_EV_API };

	e.probe = op->probe;
	e.flags = op->flags | NPS_F_NO_RESULT | NPS_F_UNFINISHED;
	for (int slot = 0; slot < 3; slot++)
		e.call.slot[slot] = op->slot[slot];
	if (op->probe == NPS_PROBE_TORCH_OP)
		e.call.slot[2] = 0; /* there is no room for what its arguments are */
	e.call.slot[3] = op->return_address;
	e.pid = t->tgid;
	e.tid = t->pid;
	e.start = op->start;
	e.dur = op->outlasted ? NPS_OUTLASTED : op->sp;
	bpf_seq_write(ctx->meta->seq, &e, sizeof(e));
}

/*
 * Those that a thread is in at the end of the capture. Whether an exception has left one is seen in the
 * memory of the process, which this program cannot read: dur is the stack pointer, slot 3 the return
 * address there. dur NPS_OUTLASTED: it has returned since the end, so none had left it.
 */
SEC("iter/task")
int open_operators(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct op_state *st = t ? local_of(&op_threads, t) : NULL;
	__u64 sp;

	if (!st || is_exiting(t))
		return 0;
	for (__u32 i = 0; i < LABELS; i++) {
		const struct open_op *op = &st->labels[MASKED(i, LABELS)];

		if (i >= st->n_labels)
			break;
		if (op->probe && op->start < ended_at && !probes_are_detached(op->group))
			open_operator_write(ctx, t, op);
	}
	if (!st->stack.depth)
		return 0;
	sp = user_stack_pointer(t);
	for (__u32 i = 0; i < OP_DEPTH; i++) {
		struct open_op *op = &st->stack.ops[MASKED(i, OP_DEPTH)];

		if (i >= st->stack.depth)
			break;
		if (!is_op_wanted(st, op) || op->start >= ended_at || probes_are_detached(op->group) ||
		    (!op->outlasted && was_left(op->sp, sp)))
			continue;
		open_operator_write(ctx, t, op);
	}
	return 0;
}

#endif
