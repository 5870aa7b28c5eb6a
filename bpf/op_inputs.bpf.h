/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --record-shapes with --ops: what PyTorch's operators are called with. User space knows from an operator's
 * symbol how each argument is passed, and from the version of the library how a tensor looks. Each tensor is
 * checked nevertheless: its number of elements must be the product of its sizes, its data type and the flag
 * of its device must be possible. What fails is recorded as unknown.
 */
#ifndef NPS_OP_INPUTS_BPF_H
#define NPS_OP_INPUTS_BPF_H

#include "arguments.bpf.h"
#include "local.bpf.h"

const volatile bool with_inputs = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* NPS_OP_INPUTS_KEY */
	__type(value, struct nps_op_inputs);
} op_inputs SEC(".maps");

#define TENSOR_INLINE 5 /* sizes in the object itself */

/* Members of c10::TensorImpl from its number of dimensions on. */
struct tensor_part {
	__u64 dims;
	__u64 sizes[TENSOR_INLINE]; /* [0]: their address if there are more */
	__u64 strides[TENSOR_INLINE];
	__u64 storage_offset;
	__u64 elements;
	__u16 type;
	__u8 device[3]; /* type and index, with a flag in front or behind */
	__u8 pad[3];
};

_Static_assert((NPS_LAYOUTS & (NPS_LAYOUTS - 1)) == 0, "layouts");

static const struct {
	__u8 part, flag, types;
} tensor_layouts[NPS_LAYOUTS] = {
	[NPS_LAYOUT_1_13] = { 72, 0, 18 },
	[NPS_LAYOUT_2_6] = { 64, 2, 44 },
	[NPS_LAYOUT_2_14] = { 56, 2, 47 },
};

/* Of an operator that is being entered. */
struct input_state {
	struct arguments arguments;
	struct tensor_part tensor;
	__u64 size[NPS_TENSOR_DIMS_MAX];
	__u64 what; /* enum nps_op_input of its arguments, as in their record */
};

/* Argument SLOT, from 0. */
static __always_inline __u64 input_slot(struct input_state *in, __u8 slot, bool *lost)
{
	return call_argument(&in->arguments, slot + 1, lost);
}

/* Sends that argument I is a tensor of those sizes. */
static __always_inline void input_send(struct input_state *in, __u32 i, __u64 start)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	void *ring = this_ring();
	struct nps_event *e = event_reserve(ring, NPS_EV_INPUT);

	if (!e)
		return;
	e->probe = NPS_PROBE_TORCH_OP;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->input_head =
		(struct nps_input_head){ .argument = i, .dims = in->tensor.dims, .type = in->tensor.type };
	e->start = start;
	e->dur = 0;
	for (__u32 d = 0; d < NPS_TENSOR_DIMS_MAX; d++)
		e->input.size[d] = in->size[d];
	bpf_ringbuf_submit(e, wake_flag(ring));
}

/* Reads the sizes of in->tensor. False: they cannot be read, or recorded. */
static __always_inline bool input_sizes(struct input_state *in)
{
	struct tensor_part *t = &in->tensor;
	__u64 elements = 1, n = t->dims;

	for (__u32 d = 0; d < NPS_TENSOR_DIMS_MAX; d++)
		in->size[d] = d < TENSOR_INLINE && d < n ? t->sizes[d] : 0;
	if (n > NPS_TENSOR_DIMS_MAX)
		return false;
	if (n > TENSOR_INLINE && bpf_probe_read_user(in->size, n * sizeof(*in->size), (void *)t->sizes[0]))
		return false;
	for (__u32 d = 0; d < NPS_TENSOR_DIMS_MAX; d++) {
		if (in->size[d] >> 32)
			return false;
		if (d < n)
			elements *= in->size[d];
	}
	return elements == t->elements;
}

/* What the c10::TensorImpl at TENSOR is, which is argument I; a tensor is sent. */
static __always_inline enum nps_op_input input_tensor(struct input_state *in, __u32 i, __u64 tensor,
						      __u32 layout, __u64 start)
{
	struct tensor_part *t = &in->tensor;
	__u32 known = MASKED(layout, NPS_LAYOUTS);
	__u8 has_device;

	if (!tensor_layouts[known].part)
		return NPS_OP_INPUT_UNKNOWN;
	if (bpf_probe_read_user(t, sizeof(*t), (void *)(tensor + tensor_layouts[known].part))) {
		count_up(NPS_COUNTER_FAULT);
		return NPS_OP_INPUT_UNKNOWN;
	}
	has_device = tensor_layouts[known].flag ? t->device[2] : t->device[0];
	if (!has_device) /* undefined: the object that all of those are has one dimension, of size 0 */
		return t->dims == 1 && !t->sizes[0] && !t->elements ? NPS_OP_INPUT_NONE
								    : NPS_OP_INPUT_UNKNOWN;
	if (has_device != 1 || t->type >= tensor_layouts[known].types || !input_sizes(in))
		return NPS_OP_INPUT_UNKNOWN;
	input_send(in, i, start);
	return NPS_OP_INPUT_TENSOR;
}

static __always_inline enum nps_op_input by_flag(__u8 flag, enum nps_op_input what)
{
	return flag > 1 ? NPS_OP_INPUT_UNKNOWN : flag ? what : NPS_OP_INPUT_NONE;
}

/* The byte of a flag, 2: it cannot be read. */
static __always_inline __u8 flag_at(__u64 address)
{
	__u8 flag = 0;

	return bpf_probe_read_user(&flag, sizeof(flag), (void *)address) ? 2 : flag;
}

/*
 * What argument I, INPUT, of an operator is: enum nps_op_input. A global function: the verifier checks it
 * once, not for each argument.
 */
__noinline int op_input(__u32 i, __u32 input, __u32 layout, __u64 start);

/* Reads the arguments of an operator: its slots 2 and 3. The records of its tensors have START. */
static __always_inline void op_read_inputs(struct pt_regs *ctx, struct input_state *in, __u64 *slot,
					   __u16 number, __u32 layout, __u64 start)
{
	__u32 key = NPS_OP_INPUTS_KEY(number, layout);
	const struct nps_op_inputs *inputs = bpf_map_lookup_elem(&op_inputs, &key);

	if (!inputs)
		return;
	load_arguments(ctx, &in->arguments);
	in->what = 0;
	for (__u32 i = 0; i < NPS_OP_INPUTS; i++) {
		__u64 what;

		if (i >= inputs->n)
			break;
		what = op_input(i, inputs->input[i], layout, start) & 0xf;
		in->what |= what << 4 * i;
	}
	slot[2] = start;
	slot[3] = in->what;
}

#endif
