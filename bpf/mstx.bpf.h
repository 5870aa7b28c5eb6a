/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Domains of marks and ranges: which ones are selected, and the names of those created before the capture. */
#ifndef NPS_MSTX_BPF_H
#define NPS_MSTX_BPF_H

#include "catalog.h"
#include "local.bpf.h"
#include "text.bpf.h"

const volatile __u8 mstx_mode = NPS_MSTX_ALL;
const volatile __u8 mstx_default_wanted = 1; /* marks without a domain */

struct domain_key {
	__u64 handle;
	__u64 pid;
};

struct mstx_domain {
	__u64 name; /* id of the text, 0: unknown */
	__u64 wanted;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct domain_key);
	__type(value, struct mstx_domain);
} domains SEC(".maps");

struct domain_name {
	char text[NPS_STR_MAX]; /* padded with zeros */
};

/* Names of --mstx-domain-include or --mstx-domain-exclude. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NPS_MSTX_DOMAINS);
	__type(key, struct domain_name);
	__type(value, __u8);
} domain_names SEC(".maps");

_Static_assert(NPS_PROBE_MSTX_DOMAIN_END - NPS_PROBE_MSTX_MARK == 7, "rows of mstx stand together");

static __always_inline bool is_mstx(__u16 probe)
{
	return (probe >= NPS_PROBE_MSTX_MARK && probe <= NPS_PROBE_MSTX_DOMAIN_END) ||
	       probe == NPS_PROBE_ACLPROF_MARK;
}

/* Is the domain whose name was just interned selected? */
static __always_inline bool name_wanted(struct text_scratch *t)
{
	bool listed;

	if (mstx_mode == NPS_MSTX_ALL)
		return true;
	listed = bpf_map_lookup_elem(&domain_names, t->part[0].text);
	return listed == (mstx_mode == NPS_MSTX_INCLUDE);
}

static __always_inline void domain_remember(__u32 pid, __u64 handle, __u64 name, bool wanted)
{
	struct domain_key key = { handle, pid };
	struct mstx_domain d = { name, wanted };

	bpf_map_update_elem(&domains, &key, &d, BPF_ANY);
}

/* Sends a record as if the process had created the domain just now, so that the analyzer learns its name. */
static __always_inline void domain_send(__u64 pid_tgid, __u64 handle, __u64 name)
{
	struct nps_event *e = event_reserve(this_ring(), NPS_EV_API);

	if (!e)
		return;
	e->probe = NPS_PROBE_MSTX_DOMAIN_CREATE;
	e->pid = pid_tgid >> 32;
	e->tid = (__u32)pid_tgid;
	e->ret = 0;
	e->start = bpf_ktime_get_ns();
	e->dur = 0;
	e->call.slot[0] = name;
	e->call.slot[1] = handle;
	e->call.slot[2] = e->call.slot[3] = 0;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

static __always_inline struct mstx_domain *domain_of_parent(__u64 handle)
{
	struct domain_key key = { handle, 0 };
	struct task_struct *task = this_task();

	key.pid = (__u32)BPF_CORE_READ(task, real_parent, tgid);
	return bpf_map_lookup_elem(&domains, &key);
}

/*
 * A handle whose creation was not recorded: the parent's, or one of our own library, which contains its name.
 */
static __noinline bool domain_first_seen(struct text_scratch *t, __u64 handle)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), magic = 0, name = 0;
	struct mstx_domain *parents = domain_of_parent(handle);
	__u32 pid = pid_tgid >> 32;
	bool wanted = mstx_mode != NPS_MSTX_INCLUDE;

	if (parents) {
		name = parents->name;
		wanted = parents->wanted;
	} else if (!bpf_probe_read_user(&magic, sizeof(magic), (void *)handle) && magic == NPS_MSTX_MAGIC) {
		name = text_intern(t, pid, handle + sizeof(magic));
		if (name)
			wanted = name_wanted(t);
	}
	if (name)
		domain_send(pid_tgid, handle, name);
	else
		count_up(NPS_COUNTER_DOMAIN_UNKNOWN);
	domain_remember(pid, handle, name, wanted);
	return wanted;
}

/* Is this mark or range, whose first argument is FIRST, in a selected domain? */
static __always_inline bool mstx_wanted(struct text_scratch *t, __u16 probe, __u32 pid, __u64 first)
{
	struct domain_key key = { first, pid };
	struct mstx_domain *d;
	bool wanted = true;

	switch (probe) {
	case NPS_PROBE_MSTX_DOMAIN_MARK:
	case NPS_PROBE_MSTX_DOMAIN_START:
	case NPS_PROBE_MSTX_DOMAIN_END:
		if (!first) {
			wanted = mstx_default_wanted;
			break;
		}
		d = bpf_map_lookup_elem(&domains, &key);
		wanted = d ? d->wanted : domain_first_seen(t, first);
		break;
	case NPS_PROBE_MSTX_MARK:
	case NPS_PROBE_MSTX_RANGE_START:
	case NPS_PROBE_MSTX_RANGE_END:
	case NPS_PROBE_ACLPROF_MARK:
		wanted = mstx_default_wanted;
		break;
	}
	if (!wanted)
		count_up(NPS_COUNTER_MSTX_FILTERED);
	return wanted;
}

#endif
