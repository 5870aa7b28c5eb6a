/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * What torch_npu's allocator of device memory does: each time it calls a function for its own profiler,
 * whether that runs or not.
 */
#ifndef NPS_TORCH_MEMORY_BPF_H
#define NPS_TORCH_MEMORY_BPF_H

#include "cookie.bpf.h"
#include "ending.bpf.h"

/* Its argument, torch_npu::profiler::MemoryUsage, the same in all versions. */
struct memory_usage {
	__s8 device_type;
	struct nps_memory_head head;
	__u8 pad[3];
	__u64 address;
	__s64 number[4]; /* by enum nps_memory_number */
	__u64 stream;
};

_Static_assert(sizeof(struct memory_usage) == 56, "MemoryUsage");
_Static_assert(__builtin_offsetof(struct memory_usage, stream) == 48, "MemoryUsage");

static __always_inline bool has_48_bits(__s64 number)
{
	return number >= -(1LL << 47) && number < 1LL << 47;
}

SEC("uprobe")
int torch_memory(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx), pid_tgid = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	struct memory_usage usage;
	struct nps_event *e;
	void *ring;

	if (!target_flags(pid_tgid >> 32) || ended_at)
		return 0;
	count_up(NPS_COUNTER_MARKS + NPS_COOKIE_CLASS(cookie));
	if (bpf_probe_read_user(&usage, sizeof(usage), (void *)PT_REGS_PARM1(ctx))) {
		count_up(NPS_COUNTER_FAULT);
		count_up(NPS_COUNTER_LOST + NPS_EV_MEMORY);
		return 0;
	}
	ring = this_ring();
	e = event_reserve(ring, NPS_EV_MEMORY);
	if (!e)
		return 0;
	e->probe = NPS_COOKIE_PROBE(cookie);
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->memory_head = usage.head;
	e->start = now;
	e->address = usage.address;
	e->memory.stream = usage.stream;
	for (int i = 0; i < 4; i++) {
		__s64 number = usage.number[i];

		if (!has_48_bits(number)) {
			e->flags |= NPS_F_SLOT_FAULT(i);
			number = 0;
		}
		e->memory.low[i] = (__u32)number;
		e->memory.high[i] = (__s16)(number >> 32);
	}
	bpf_ringbuf_submit(e, wake_flag(ring));
	return 0;
}

#endif
