/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --record-shapes, a part of runtime.bpf.c: shapes of tensors, and which tensors an operator was called
 * with. Objects of the job are not interpreted: a tensor is identified by the address that aclCreateTensor
 * returned, an operand by being passed to a first phase.
 */
#ifndef NPS_SHAPES_BPF_H
#define NPS_SHAPES_BPF_H

const volatile bool with_shapes = false;

static __always_inline struct nps_event *tensor_record(struct thread_state *st, void *ring,
						       struct nps_tensor_head head, __u64 handle)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u16 sequence = st->tensor_records++;
	struct nps_event *e = event_reserve(ring, NPS_EV_TENSOR);

	if (!e)
		return NULL;
	e->sequence = sequence;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->tensor_head = head;
	e->start = bpf_ktime_get_ns();
	e->handle = handle;
	return e;
}

/* aclCreateTensor returned TENSOR; its slots: address of the sizes, their number, data type, format. */
static __always_inline void send_tensor(struct thread_state *st, const struct open_call *c, __u64 tensor)
{
	__u64 dims[NPS_TENSOR_DIMS_MAX] = { 0 }, n = c->slot[1];
	struct nps_tensor_head head = { .what = NPS_TENSOR_TENSOR, .type = c->slot[2], .format = c->slot[3] };
	void *ring = this_ring();
	struct nps_event *e;
	__u8 flags = 0;

	if (!tensor)
		return;
	if (n > NPS_TENSOR_DIMS_MAX) {
		flags = NPS_F_TRUNCATED;
		n = 0;
	} else if (n && bpf_probe_read_user(dims, n * sizeof(*dims), (void *)c->slot[0])) {
		flags = NPS_F_SLOT_FAULT(0);
		count_up(NPS_COUNTER_FAULT);
	}
	head.dims = n;
	e = tensor_record(st, ring, head, tensor);
	if (!e)
		return;
	for (int i = 0; i < NPS_TENSOR_DIMS_MAX; i++)
		if (dims[i] >> 32)
			flags |= NPS_F_TRUNCATED;
	for (int i = 0; i < NPS_TENSOR_DIMS_MAX; i++)
		e->tensor.size[i] = dims[i];
	e->flags = flags;
	bpf_ringbuf_submit(e, wake_flag(ring));
}

/* aclCreateTensorList returned LIST; its slots: address of the members, their number. */
static __always_inline void send_list(struct thread_state *st, const struct open_call *c, __u64 list)
{
	__u64 members = c->slot[0], n = c->slot[1];
	void *ring = this_ring();

	if (!list)
		return;
	for (__u32 part = 0; part < NPS_MAX_LIST / 4; part++) {
		struct nps_tensor_head head = { .what = NPS_TENSOR_LIST,
						.part = part,
						.count = n > 0xffff ? 0xffff : n };
		struct nps_event *e;

		if (part && part * 4 >= n)
			break;
		e = tensor_record(st, ring, head, list);
		if (!e)
			continue;
		for (__u32 i = 0; i < 4; i++) {
			e->tensor.member[i] = 0;
			if (part * 4 + i >= n)
				continue;
			if (bpf_probe_read_user(&e->tensor.member[i], sizeof(__u64),
						(void *)(members + (part * 4 + i) * sizeof(__u64)))) {
				e->flags |= NPS_F_SLOT_FAULT(0);
				count_up(NPS_COUNTER_FAULT);
			}
		}
		bpf_ringbuf_submit(e, wake_flag(ring));
	}
}

/* Remembers where the first phase that this thread is in will write its executor. */
static __always_inline void remember_executor(struct thread_state *st, __u64 where)
{
	st->executor_at = where;
}

/* A first phase was entered, with N arguments. */
static __always_inline void send_operands(struct pt_regs *ctx, struct thread_state *st, __u64 operator,
					  __u32 n)
{
	void *ring = this_ring();
	struct arguments a;
	bool lost = false;

	load_arguments(ctx, &a);
	remember_executor(st, call_argument(&a, n + 2, &lost)); /* behind the size of the workspace */
	if (lost)
		count_up(NPS_COUNTER_FAULT);
	for (__u32 part = 0; part < NPS_MAX_OPERANDS / 4; part++) {
		struct nps_tensor_head head = { .what = NPS_TENSOR_OPERANDS, .part = part, .count = n };
		struct nps_event *e;

		if (part * 4 >= n)
			break;
		e = tensor_record(st, ring, head, operator);
		if (!e)
			continue;
		lost = false;
		for (__u32 i = 0; i < 4; i++)
			e->tensor.member[i] = part * 4 + i < n ? call_argument(&a, part * 4 + i + 1, &lost)
							       : 0;
		if (lost) {
			e->flags |= NPS_F_SLOT_FAULT(0);
			count_up(NPS_COUNTER_FAULT);
		}
		bpf_ringbuf_submit(e, wake_flag(ring));
	}
}

/*
 * The first phase is over, and its caller's variable still exists. Its return cannot be probed, because an
 * exception may leave it.
 */
static __always_inline void send_executor(struct thread_state *st)
{
	__u64 where = st->executor_at, executor = 0;
	void *ring = this_ring();
	struct nps_event *e;

	st->executor_at = 0;
	if (!where)
		return;
	if (bpf_probe_read_user(&executor, sizeof(executor), (void *)where)) {
		count_up(NPS_COUNTER_FAULT);
		return;
	}
	if (!executor)
		return;
	e = tensor_record(st, ring, (struct nps_tensor_head){ .what = NPS_TENSOR_EXECUTOR }, executor);
	if (!e)
		return;
	e->tensor = (struct nps_event_tensor){};
	bpf_ringbuf_submit(e, wake_flag(ring));
}

#endif
