/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The probed calls that a thread is in. Includes no header of the kernel or of libbpf, because a unit test
 * in user space includes it too.
 */
#ifndef NPS_CALL_STACK_BPF_H
#define NPS_CALL_STACK_BPF_H

#include "bpf_shared.h"
#include "catalog.h"

struct probe_spec {
	__u8 flags;
	__u8 call; /* enum nps_call */
	struct nps_slot slot[4];
};

/* Sizes are powers of two: the verifier keeps the bound of a mask where it forgets that of a comparison. */
#define SPEC_SLOTS 512
#if defined(__bpf__)
#define MASKED(i, slots)                                                                                     \
	({                                                                                                   \
		__u64 _i = (i);                                                                              \
		asm volatile("%0 &= %1" : "+r"(_i) : "i"((slots)-1));                                        \
		_i;                                                                                          \
	})
#else
#define MASKED(i, slots) ((i) & ((slots)-1))
#endif

_Static_assert(NPS_PROBE_MAX <= SPEC_SLOTS, "specs");
_Static_assert((NPS_MAX_DEPTH & (NPS_MAX_DEPTH - 1)) == 0, "calls");
_Static_assert((NPS_GROUPS & (NPS_GROUPS - 1)) == 0, "groups");

static const struct probe_spec specs[SPEC_SLOTS] = {
#define SPEC(id, symbol, lib, layer, call, flags, s0, s1, s2, s3)                                            \
	[NPS_PROBE_##id] = { flags, NPS_CALL_##call, { { s0 }, { s1 }, { s2 }, { s3 } } },
	NPS_CATALOG(SPEC)
#undef SPEC
};

static __always_inline const struct probe_spec *spec_of(__u16 probe)
{
	return &specs[MASKED(probe, SPEC_SLOTS)];
}

/* What halSqTaskSend changed of a queue's owner, to be reverted if it fails. */
struct queue_change {
	__u32 pid, stream; /* of the owner before, pid 0: none */
	__u32 queue;
	__u16 new_stream;
	__u8 changed;
	__u8 pad;
};

struct open_call {
	__u64 start;
	__u64 sp;
	union {
		__u64 slot[4]; /* by the probe's row of the catalogue */
		struct {
			__u64 device;
			__u64 info; /* address of the call's struct */
			struct queue_change change; /* in slots that no argument is in */
		} transfer; /* halSqTaskSend, halCqReportRecv */
	};
	__u16 probe;
	__u8 flags;
	__u8 wanted; /* a call of a domain being created: is the domain selected? */
	__u16 group; /* of probes */
};

/*
 * Results of loops are kept in memory, where the verifier assumes any value. Were they local variables, it
 * would follow all code after the loop once for each value, which takes it half a second.
 */
struct call_stack {
	__u32 depth;
	__u32 found; /* index of a call */
	__u32 passed; /* calls that are over and did not return */
	struct open_call calls[NPS_MAX_DEPTH];
};

/* By group of probes: NPS_GROUP_*, and how often those that are counted were entered. */
volatile __u8 group_state[NPS_GROUPS];
__u64 group_entered[NPS_GROUPS];

static __always_inline bool probes_are_detached(__u16 group)
{
	return group_state[MASKED(group, NPS_GROUPS)] == NPS_GROUP_DETACHED;
}

/* The return of C is not probed any more, so nothing shows whether the thread is still in it. */
static __always_inline bool call_is_detached(const struct open_call *c)
{
	return probes_are_detached(c->group);
}

/*
 * Drops calls whose stack frame has been unwound by longjmp or an exception, and returns how many. Also
 * drops the innermost ones whose probes were detached, which are not counted.
 */
static __always_inline __u32 stack_drop_dead(struct call_stack *st, __u64 sp, __u16 probe)
{
	st->passed = 0;
	for (int i = 0; i < NPS_MAX_DEPTH; i++) {
		__u32 top = st->depth - 1;
		struct open_call *c;
		bool detached;

		if (top >= NPS_MAX_DEPTH)
			break;
		c = &st->calls[MASKED(top, NPS_MAX_DEPTH)];
		detached = call_is_detached(c);
		/*
		 * Equal stack pointers: a tail call keeps the stack pointer, unless it
		 * is the same function again.
		 */
		if (!detached && (c->sp > sp || (c->sp == sp && c->probe != probe)))
			break;
		st->passed += !detached;
		st->depth = top;
	}
	return st->passed;
}

/*
 * The innermost open call of PROBE at stack pointer SP; NULL: it was entered before we attached, or folded.
 * Sets st->found to its index and st->passed to the number of calls inside it that never returned.
 */
static __always_inline struct open_call *find_call(struct call_stack *st, __u64 sp, __u16 probe)
{
	st->found = NPS_MAX_DEPTH;
	st->passed = 0;
	for (int i = 0; i < NPS_MAX_DEPTH; i++) {
		__u32 top = st->depth - 1 - i;
		const struct open_call *c;

		if (top >= NPS_MAX_DEPTH)
			break;
		c = &st->calls[MASKED(top, NPS_MAX_DEPTH)];
		if (c->probe == probe && c->sp == sp) {
			st->found = top;
			break;
		}
		st->passed += !call_is_detached(c);
	}
	return st->found < NPS_MAX_DEPTH ? &st->calls[MASKED(st->found, NPS_MAX_DEPTH)] : 0;
}

/* Is the thread inside a probed function whose own record makes records of inner calls unnecessary? */
static __always_inline bool is_covered_above(const struct call_stack *st)
{
	for (__u32 i = 0; i < NPS_MAX_DEPTH; i++) {
		const struct open_call *c = &st->calls[MASKED(i, NPS_MAX_DEPTH)];

		if (i >= st->depth)
			return false;
		if (!(spec_of(c->probe)->flags & NPS_P_OPEN) && !call_is_detached(c))
			return true;
	}
	return true;
}

#endif
