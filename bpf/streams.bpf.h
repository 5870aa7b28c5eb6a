/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Whose queues and streams of the device are whose, where a tracepoint of the driver leaves nothing else to go by. */
#ifndef NPS_STREAMS_BPF_H
#define NPS_STREAMS_BPF_H

/* Watched processes alone, as they submit. None that is in use makes way for another, as those of an LRU would on many CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32); /* device << 16 | stream */
	__type(value, __u32); /* thread group */
} stream_owners SEC(".maps");

struct queue_owner {
	__u32 pid, stream;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32); /* device << 16 | queue */
	__type(value, struct queue_owner);
} queue_owners SEC(".maps");

/*
 * A container's process calls devices by other numbers than the driver: what it says of queues is not true of the driver's. To the
 * driver a container is a mount namespace other than the first process's.
 */
static __always_inline bool in_container(void)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	return bpf_core_field_exists(t->thread_pid) &&
	       BPF_CORE_READ(t, nsproxy, mnt_ns) !=
		       BPF_CORE_READ(t, thread_pid, numbers[0].ns, child_reaper, nsproxy, mnt_ns);
}

#define STREAM_KEY(device, stream) ((__u32)(device) << 16 | ((stream)&0xffff))

#endif
