/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The C++ functions that a thread is in whose ends are seen by probes in front of their returns, because
 * exceptions may cross them. A unit test in user space includes it, too.
 *
 * A call is over when the stack pointer is above that of its entry, or, without a probe on the way, when the
 * next function is entered at the same one. Between its entry and the probe at its end its frame exists, so
 * the stack pointer is never above that of the entry.
 */
#ifndef NPS_OP_STACK_BPF_H
#define NPS_OP_STACK_BPF_H

#include "call_stack.bpf.h"

#define OP_DEPTH 32

_Static_assert((OP_DEPTH & (OP_DEPTH - 1)) == 0, "operators");

struct open_op {
	__u64 start; /* CLOCK_MONOTONIC ns */
	__u64 sp; /* at the entry */
	__u64 return_address; /* at sp while the call is open; 0: unknown */
	__u64 slot[4];
	__u32 npu_calls; /* of the thread before it */
	__u16 probe;
	__u16 number; /* of the operator */
	__u16 group; /* of probes */
	__u8 flags; /* NPS_F_* */
	__u8 outlasted; /* it returned after the end of the capture, so it was open at the end */
	__u8 pad[4];
};

/* Results of loops are kept in memory: see call_stack. */
struct op_stack {
	__u32 depth;
	__u32 found; /* depth that is left when the call has ended; OP_DEPTH: it is not open */
	struct open_op ops[OP_DEPTH];
};

/* Depth of the calls that are still open where a function is entered at stack pointer SP. */
static __always_inline void ops_at_entry(struct op_stack *st, __u64 sp)
{
	st->found = st->depth;
	for (int i = 0; i < OP_DEPTH; i++) {
		__u32 top = st->found - 1;
		__u64 entry_sp;

		if (top >= OP_DEPTH)
			break;
		entry_sp = st->ops[MASKED(top, OP_DEPTH)].sp;
		if (entry_sp > sp || sp - entry_sp >= NPS_SAME_STACK)
			break;
		st->found = top;
	}
}

/*
 * Finds the innermost open call of a function that ends at stack pointer SP: st->found becomes its index.
 * Calls above it are over. OP_DEPTH: it was entered before the probes were attached, or is not recorded.
 */
static __always_inline void ops_at_end(struct op_stack *st, __u64 sp, __u16 probe, __u16 number)
{
	st->found = OP_DEPTH;
	for (int i = 0; i < OP_DEPTH; i++) {
		__u32 top = st->depth - 1 - i;
		const struct open_op *op;

		if (top >= OP_DEPTH)
			break;
		op = &st->ops[MASKED(top, OP_DEPTH)];
		if (op->probe == probe && op->number == number && op->sp >= sp) {
			st->found = top;
			break;
		}
		/* It is still open, and inside no call of the function that is known. */
		if (op->sp > sp)
			break;
	}
}

#endif
