/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of what watching costs (overhead.h): occurrences times what one costs at the time, summed up as the capture goes on,
 * and what to give up when an interval took more than is allowed. Nothing here knows where the numbers come from.
 */
#ifndef NPS_COST_ACCOUNT_H
#define NPS_COST_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "probe_point.h"

enum nps_cost_kind {
	NPS_COST_CALL, /* functions probed at entry and return, by class: the first of them */
	NPS_COST_MARK = NPS_COST_CALL + NPS_PROBE_CLASSES, /* functions probed at entry, the same */
	NPS_COST_SYSCALL = NPS_COST_MARK + NPS_PROBE_CLASSES, /* system calls with a record each */
	NPS_COST_SUM, /* those that are summed up */
	NPS_COST_SWITCH,
	NPS_COST_FAULT,
	NPS_COST_KINDS
};

/* Stages of giving up, in this order. */
enum nps_shed {
	NPS_SHED_RECORDS, /* records of single system calls: they are summed up */
	NPS_SHED_SYSCALLS, /* system calls */
	NPS_SHED_SCHED, /* scheduling */
	NPS_SHED_DETAIL, /* calls that neither queue work, nor wait for it, nor name it */
	NPS_SHED_NAMES, /* what names kernels */
	NPS_SHED_CORE, /* every probe: what is left is the device's log */
	NPS_SHED_STAGES
};

struct nps_account {
	uint64_t seen[NPS_COST_KINDS]; /* occurrences that are accounted for */
	double spent[NPS_COST_KINDS]; /* ns since the capture began */
	double lately[NPS_COST_KINDS]; /* ns since the last interval that was long enough to be judged */
	uint64_t judged[NPS_COST_KINDS]; /* `seen` when that one ended */
	uint64_t cpu_seen; /* of the job, ns, when that interval ended */
	unsigned int given_up; /* 1 << enum nps_shed */
};

/* Takes the running totals of occurrences; COST: ns of one, of no cost where it is not positive. */
void nps_account__add(struct nps_account *a, const uint64_t totals[NPS_COST_KINDS],
		      const double cost[NPS_COST_KINDS]);

/* Costs are known better now: what was spent until now is what was seen at these. The interval is judged by them, too. */
void nps_account__price_anew(struct nps_account *a, const double cost[NPS_COST_KINDS]);

/* Sum over the kinds; over the classes of a kind that has them. */
double nps_account__sum(const double kinds[NPS_COST_KINDS]);
double nps_account__sum_of_classes(const double kinds[NPS_COST_KINDS], enum nps_cost_kind first);

/*
 * Ends an interval when the job has used CPU_NS since the capture began. *PERCENT: the share of the job's CPU time that watching took in
 * it. Above LIMIT, percent, returns what to give up, which then counts as given up: the first stage that would save something
 * worth the loss, of those that `can` says are there. Negative: nothing; the interval can be too short to say, and goes on
 * then, *PERCENT is negative.
 */
int nps_account__judge(struct nps_account *a, uint64_t cpu_ns, double limit, const bool can[NPS_SHED_STAGES],
		       double *percent);

#endif
