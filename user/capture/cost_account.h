/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of what watching costs (overhead.h): occurrences multiplied by their cost at the time,
 * summed up during the capture, and what to drop when an interval exceeds the limit. It does not depend on
 * where the numbers come from.
 */
#ifndef NPS_COST_ACCOUNT_H
#define NPS_COST_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/probe_point.h"

enum nps_cost_kind {
	NPS_COST_CALL, /* functions probed at entry and return, one kind per class: the first of them */
	NPS_COST_MARK = NPS_COST_CALL + NPS_PROBE_CLASSES, /* functions probed at entry only, the same */
	NPS_COST_SYSCALL = NPS_COST_MARK + NPS_PROBE_CLASSES, /* system calls with a record each */
	NPS_COST_SUM, /* system calls that are summed up */
	NPS_COST_SWITCH,
	NPS_COST_FAULT,
	NPS_COST_PYTHON, /* ns of walks of Python stacks: BPF programs measure them */
	NPS_COST_KINDS
};

/* Stages in which recording is dropped, in this order. */
enum nps_shed {
	NPS_SHED_RECORDS, /* records of single system calls, which are summed up instead */
	NPS_SHED_SYSCALLS, /* system calls */
	NPS_SHED_SCHED, /* scheduling */
	NPS_SHED_DETAIL, /* calls that do not queue work, wait for it or name it */
	NPS_SHED_NAMES, /* calls that name kernels */
	NPS_SHED_CORE, /* all probes: only the device's log is left */
	NPS_SHED_STAGES
};

struct nps_account {
	uint64_t seen[NPS_COST_KINDS]; /* occurrences accounted for */
	double spent[NPS_COST_KINDS]; /* ns since the capture began */
	double lately[NPS_COST_KINDS]; /* ns since the last interval that was long enough for a decision */
	uint64_t judged[NPS_COST_KINDS]; /* `seen` at the end of that interval */
	uint64_t cpu_seen; /* CPU time of the job at the end of that interval, ns */
	unsigned int dropped; /* 1 << enum nps_shed */
};

/* Adds occurrences from their running totals; COST: ns of one occurrence; not positive: free. */
void nps_account__add(struct nps_account *a, const uint64_t totals[NPS_COST_KINDS],
		      const double cost[NPS_COST_KINDS]);

/*
 * Replaces the costs by better known ones: recomputes what was spent
 * until now, and the current interval, with them.
 */
void nps_account__price_anew(struct nps_account *a, const double cost[NPS_COST_KINDS]);

/* Sum over all kinds, and over the classes of a kind that has them. */
double nps_account__sum(const double kinds[NPS_COST_KINDS]);
double nps_account__sum_of_classes(const double kinds[NPS_COST_KINDS], enum nps_cost_kind first);

/*
 * Ends an interval; CPU_NS: CPU time of the job since the capture began. *PERCENT: the share of the job's
 * CPU time that watching cost in the interval. If it is above LIMIT (percent), returns the stage to drop,
 * which then counts as dropped: the first one with CAN set that saves enough to be worth the loss.
 * Negative: none. If the interval is too short for a decision, it continues, and *PERCENT is negative.
 */
int nps_account__judge(struct nps_account *a, uint64_t cpu_ns, double limit, const bool can[NPS_SHED_STAGES],
		       double *percent);

#endif
