/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * What every event family shares: which processes are watched, where records go, what was lost. Each object
 * declares these maps; user space creates them once and shares them among all objects.
 */
#ifndef NPS_COMMON_BPF_H
#define NPS_COMMON_BPF_H

#include "ktypes.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "event.h"
#include "bpf_shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NPS_MAX_TARGETS);
	__type(key, __u32); /* thread group */
	__type(value, __u32); /* NPS_TARGET_* */
} targets SEC(".maps");

/*
 * Where a text of the job is read to. One per thread, not per CPU, because these programs can be preempted.
 */
struct text_scratch {
	struct nps_string part[NPS_TEXT_PARTS];
};

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* user space sizes the real ones */
};

/* One ring per CPU: producers on different CPUs never meet. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, NPS_MAX_CPUS);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NPS_COUNTER_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* Fill level at which the reader is woken before its next turn. */
const volatile __u64 wake_bytes = 1 << 20;

static __always_inline void count_some(__u32 what, __u32 some)
{
	__u64 *n = some ? bpf_map_lookup_elem(&counters, &what) : NULL;

	if (n)
		/* per CPU: a program that preempts this one can lose a count, but never adds one */
		*n += some;
}

static __always_inline void count_up(__u32 what)
{
	count_some(what, 1);
}

/*
 * Set while the whole host is watched: system calls and scheduling of every process except the collector
 * and the child with which it measures its own cost.
 */
bool watch_all = false;
__u32 own_pid = 0, own_child = 0;

static __always_inline __u32 target_flags(__u32 tgid)
{
	__u32 *flags = bpf_map_lookup_elem(&targets, &tgid);

	if (flags)
		return *flags;
	return watch_all && tgid && tgid != own_pid && tgid != own_child ? NPS_TARGET_OSRT : 0;
}

static __always_inline void *this_ring(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&rings, &cpu);
}

/* A wake-up costs more than a record, so the reader is woken only once per crossing of the fill level. */
static __always_inline __u64 wake_flag(void *ring)
{
	__u64 filled = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);

	if (filled >= wake_bytes && filled < wake_bytes + 4096)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

static __always_inline struct nps_event *event_reserve(void *ring, __u8 kind)
{
	struct nps_event *e = ring ? bpf_ringbuf_reserve(ring, sizeof(*e), 0) : NULL;

	if (!e) {
		count_up(NPS_COUNTER_LOST + kind);
		return NULL;
	}
	e->kind = kind;
	e->flags = 0;
	return e;
}

#endif
