/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * State of each watched thread: the system call it is in, and when it last had a CPU. Objects that
 * include this share the maps.
 */
#ifndef NPS_THREADS_BPF_H
#define NPS_THREADS_BPF_H

#include "local.bpf.h"

/* What a futex wait found when it began; `words` are those of the mutex if it is one. */
struct futex_wait {
	__u64 address;
	__u32 op, value;
	__u32 words[5];
	bool unreadable;
};

struct open_syscall {
	__u64 start; /* 0: in none */
	__u64 time; /* timeout of a waiting call, ns; all ones: none */
	__u32 nr;
	__u32 epoch; /* of the targets (targets_removed), when the thread was last known to be watched */
	bool left; /* it returned after the end of the capture: its registers are not available */
	__u64 fault_start, fault_page; /* of the last page fault that may have had to wait */
	struct futex_wait wait; /* address 0: the call is no futex wait */
	struct text_scratch text;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct open_syscall);
} syscalls SEC(".maps");

static const struct open_syscall no_syscall = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NPS_MAX_THREADS);
	__type(key, __u32); /* tid */
	__type(value, struct nps_thread);
} scheds SEC(".maps");

#endif
