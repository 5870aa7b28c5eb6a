/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Which process owns which queues and streams of the device: needed for tracepoints of the driver that
 * report no process.
 */
#ifndef NPS_STREAMS_BPF_H
#define NPS_STREAMS_BPF_H

/*
 * Only watched processes, as they submit. Not an LRU: on machines with many CPUs those evict entries in
 * use.
 */
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
 * In a container the device numbers differ from the driver's, so what the process submits cannot be
 * matched with the driver's events. The driver treats any mount namespace other than that of the first
 * process as a container.
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
