/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The probed calls that a thread is in. Includes no header of the kernel or of libbpf: user space includes it, too, to
 * test it.
 */
#ifndef NPS_CALL_STACK_BPF_H
#define NPS_CALL_STACK_BPF_H

#include "bpf_shared.h"
#include "catalog.h"

struct probe_spec {
	__u8 flags;
	struct nps_slot slot[4];
};

/* Sizes are powers of two: the verifier follows a mask where it forgets a comparison. */
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
	[NPS_PROBE_##id] = { flags, { { s0 }, { s1 }, { s2 }, { s3 } } },
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
	__u8 wanted; /* of a domain that is made: is it asked for? */
	__u16 group; /* of probes */
};

/*
 * What a loop finds is kept here, where the verifier takes it for any number: in a variable it would follow all that comes after
 * the loop once for each value, which takes it half a second.
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

/* The return of C is not probed any more: whether the thread is still in it nobody can say. */
static __always_inline bool is_detached(const struct open_call *c)
{
	return group_state[MASKED(c->group, NPS_GROUPS)] == NPS_GROUP_DETACHED;
}

/*
 * Drops frames whose stack is gone, which were left by longjmp or an exception: returns how many; and those on top whose probes
 * were detached.
 */
static __always_inline __u32 drop_dead_calls(struct call_stack *st, __u64 sp, __u16 probe)
{
	st->passed = 0;
	for (int i = 0; i < NPS_MAX_DEPTH; i++) {
		__u32 top = st->depth - 1;
		struct open_call *c;
		bool detached;

		if (top >= NPS_MAX_DEPTH)
			break;
		c = &st->calls[MASKED(top, NPS_MAX_DEPTH)];
		detached = is_detached(c);
		/* Equal: a tail call keeps the stack pointer, unless it is the same function. */
		if (!detached && (c->sp > sp || (c->sp == sp && c->probe != probe)))
			break;
		st->passed += !detached;
		st->depth = top;
	}
	return st->passed;
}

/*
 * The innermost open call of PROBE at SP; NULL: it was entered before we attached, or folded. Its index is st->found, and
 * st->passed calls inside it never returned.
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
		st->passed += !is_detached(c);
	}
	return st->found < NPS_MAX_DEPTH ? &st->calls[MASKED(st->found, NPS_MAX_DEPTH)] : 0;
}

/* Is the thread inside a probed function whose record says enough of what is called in it? */
static __always_inline bool is_told_above(const struct call_stack *st)
{
	for (__u32 i = 0; i < NPS_MAX_DEPTH; i++) {
		const struct open_call *c = &st->calls[MASKED(i, NPS_MAX_DEPTH)];

		if (i >= st->depth)
			return false;
		if (!(spec_of(c->probe)->flags & NPS_P_OPEN) && !is_detached(c))
			return true;
	}
	return true;
}

#endif
