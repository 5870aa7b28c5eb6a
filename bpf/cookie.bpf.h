/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* The attach cookie, which identifies a probe to the program that it runs. */
#ifndef NPS_COOKIE_BPF_H
#define NPS_COOKIE_BPF_H

#include "common.bpf.h"

/*
 * Before 5.15 a probe has no cookie: each probe has a trampoline program, made by user space, that stores
 * the number here and tail-calls ours. Those kernels do not preempt programs of probes.
 */
const volatile bool has_cookies = true;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} cookie SEC(".maps");

static __always_inline __u64 cookie_of(struct pt_regs *ctx)
{
	__u32 only = 0;
	__u64 *left;

	if (has_cookies)
		return bpf_get_attach_cookie(ctx);
	left = bpf_map_lookup_elem(&cookie, &only);
	return left ? *left : 0;
}

#endif
