/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * What is kept of each thread. The kernel keeps it with the thread since 5.11; before, the same map is a hash by thread
 * number, which user space makes of it (user/portable.c), and which is cleaned as threads exit.
 */
#ifndef NPS_LOCAL_BPF_H
#define NPS_LOCAL_BPF_H

#include "common.bpf.h"

const volatile bool has_task_storage = true;

/* The thread that runs, to be read with BPF_CORE_READ. */
static __always_inline struct task_struct *this_task(void)
{
	return has_task_storage ? bpf_get_current_task_btf() : (struct task_struct *)bpf_get_current_task();
}

/* Of thread T; NULL: nothing is kept of it. */
static __always_inline void *local_of(void *map, struct task_struct *t)
{
	__u32 tid;

	if (has_task_storage)
		return bpf_task_storage_get(map, t, 0, 0);
	tid = BPF_CORE_READ(t, pid);
	return bpf_map_lookup_elem(map, &tid);
}

/* Of the thread that runs; NULL: nothing yet. */
static __always_inline void *local_find(void *map)
{
	__u32 tid;

	if (has_task_storage)
		return bpf_task_storage_get(map, bpf_get_current_task_btf(), 0, 0);
	tid = (__u32)bpf_get_current_pid_tgid();
	return bpf_map_lookup_elem(map, &tid);
}

/* The same, made from ZERO when it is the first time; NULL: there is no room. */
static __always_inline void *local_get(void *map, const void *zero)
{
	__u32 tid;
	void *v;

	if (has_task_storage)
		return bpf_task_storage_get(map, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	tid = (__u32)bpf_get_current_pid_tgid();
	v = bpf_map_lookup_elem(map, &tid);
	if (v || bpf_map_update_elem(map, &tid, zero, BPF_NOEXIST))
		return v;
	return bpf_map_lookup_elem(map, &tid);
}

static __always_inline void local_forget(void *map)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	if (!has_task_storage)
		bpf_map_delete_elem(map, &tid);
}

#endif
