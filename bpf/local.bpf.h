/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * State of each thread. Since 5.11 it is in task storage; before, the same map is a hash by thread id,
 * which user space makes of it (user/attach/portable.c), and entries are removed as threads exit.
 */
#ifndef NPS_LOCAL_BPF_H
#define NPS_LOCAL_BPF_H

#include "common.bpf.h"

const volatile bool has_task_storage = true;

/* The running thread, to be read with BPF_CORE_READ. */
static __always_inline struct task_struct *this_task(void)
{
	return has_task_storage ? bpf_get_current_task_btf() : (struct task_struct *)bpf_get_current_task();
}

/* State of thread T; NULL: it has none. */
static __always_inline void *local_of(void *map, struct task_struct *t)
{
	__u32 tid;

	if (has_task_storage)
		return bpf_task_storage_get(map, t, 0, 0);
	tid = BPF_CORE_READ(t, pid);
	return bpf_map_lookup_elem(map, &tid);
}

/* State of the running thread; NULL: it has none yet. */
static __always_inline void *local_find(void *map)
{
	__u32 tid;

	if (has_task_storage)
		return bpf_task_storage_get(map, bpf_get_current_task_btf(), 0, 0);
	tid = (__u32)bpf_get_current_pid_tgid();
	return bpf_map_lookup_elem(map, &tid);
}

/* State of the running thread, created as a copy of ZERO if there is none; NULL: no room. */
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
