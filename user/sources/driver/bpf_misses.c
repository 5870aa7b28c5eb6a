/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/driver/bpf_misses.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stddef.h>

/* struct bpf_link_info of a kprobe, in kernels since 6.7; installed headers are older. */
struct kprobe_link {
	uint32_t type, id, prog_id, pad;
	uint32_t event, pad2; /* enum bpf_perf_event_type */
	uint64_t func_name;
	uint32_t name_len, offset;
	uint64_t addr, missed;
};
_Static_assert(offsetof(struct kprobe_link, missed) == 48, "layout");

#define LINK_PERF_EVENT 7
#define EVENT_KPROBE 3
#define EVENT_KRETPROBE 4

bool nps_bpf_misses__program(int prog_fd, uint64_t *missed)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	*missed = 0;
	if (bpf_obj_get_info_by_fd(prog_fd, &info, &size) ||
	    size < offsetof(struct bpf_prog_info, recursion_misses) + sizeof(info.recursion_misses))
		return false;
	*missed = info.recursion_misses;
	return true;
}

bool nps_bpf_misses__kprobe(int link_fd, uint64_t *missed)
{
	struct kprobe_link info = {};
	uint32_t size = sizeof(info);

	*missed = 0;
	if (bpf_obj_get_info_by_fd(link_fd, &info, &size) || size < sizeof(info) ||
	    info.type != LINK_PERF_EVENT || (info.event != EVENT_KPROBE && info.event != EVENT_KRETPROBE))
		return false;
	*missed = info.missed;
	return true;
}
