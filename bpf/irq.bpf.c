// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Interrupts that stop a watched thread: one record each, written when it ends. Attached on request only,
 * because at every interrupt of the host the program has to find out which thread it stopped.
 */
#include "common.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct open_irq {
	__u64 start; /* 0: not of a watched thread */
	__u32 tid;
};

/*
 * At most one of each kind is open on a CPU: a device interrupt can stop a softirq, another softirq cannot.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32); /* enum nps_irq_what */
	__type(value, struct open_irq);
} irqs SEC(".maps");

static __always_inline int irq_entered(__u32 what)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct open_irq *irq;

	if (!(target_flags(pid_tgid >> 32) & NPS_TARGET_OSRT))
		return 0;
	irq = bpf_map_lookup_elem(&irqs, &what);
	if (!irq)
		return 0;
	irq->tid = (__u32)pid_tgid;
	irq->start = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int left(__u32 what, __u16 number)
{
	struct open_irq *irq = bpf_map_lookup_elem(&irqs, &what);
	__u64 pid_tgid, start;
	struct nps_event *e;
	void *ring;

	if (!irq || !irq->start)
		return 0;
	start = irq->start;
	irq->start = 0;
	pid_tgid = bpf_get_current_pid_tgid();
	if (irq->tid != (__u32)pid_tgid)
		return 0; /* a preemptible kernel has switched to another thread meanwhile */
	ring = this_ring();
	e = event_reserve(ring, NPS_EV_IRQ);
	if (!e)
		return 0;
	e->number = number;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = 0;
	e->start = start;
	e->dur = bpf_ktime_get_ns() - start;
	e->irq = (struct nps_event_irq){ .what = what, .cpu = bpf_get_smp_processor_id() };
	bpf_ringbuf_submit(e, wake_flag(ring));
	return 0;
}

SEC("raw_tp/irq_handler_entry")
int hard_entered(struct bpf_raw_tracepoint_args *ctx)
{
	return irq_entered(NPS_IRQ_HARD);
}

SEC("raw_tp/irq_handler_exit")
int BPF_PROG(hard_left, int irq)
{
	return left(NPS_IRQ_HARD, irq);
}

SEC("raw_tp/softirq_entry")
int soft_entered(struct bpf_raw_tracepoint_args *ctx)
{
	return irq_entered(NPS_IRQ_SOFT);
}

SEC("raw_tp/softirq_exit")
int BPF_PROG(soft_left, unsigned int vector)
{
	return left(NPS_IRQ_SOFT, vector);
}

#if defined(__TARGET_ARCH_x86)
/* On x86 these do not pass the handlers of devices. On arm64 they do, like all other interrupts. */
#define LOCAL(name, number)                                                                                  \
	SEC("raw_tp/" #name "_entry")                                                                        \
	int name##_entered(struct bpf_raw_tracepoint_args *ctx)                                              \
	{                                                                                                    \
		return irq_entered(NPS_IRQ_LOCAL);                                                           \
	}                                                                                                    \
	SEC("raw_tp/" #name "_exit")                                                                         \
	int name##_left(struct bpf_raw_tracepoint_args *ctx)                                                 \
	{                                                                                                    \
		return left(NPS_IRQ_LOCAL, number);                                                          \
	}

LOCAL(local_timer, NPS_LOCAL_TIMER)
LOCAL(reschedule, NPS_LOCAL_RESCHEDULE)
LOCAL(call_function, NPS_LOCAL_CALL)
LOCAL(call_function_single, NPS_LOCAL_CALL_SINGLE)
#endif
