/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/cost_account.h"

#include <string.h>

/* of the job, for a meaningful share of it: the kernel counts it in steps of 10 ms */
#define LEAST_CPU_NS 200000000ULL
#define WORTH 0.02 /* of all cost: a stage that saves less is skipped */

void nps_account__add(struct nps_account *a, const uint64_t totals[NPS_COST_KINDS],
		      const double cost[NPS_COST_KINDS])
{
	for (int i = 0; i < NPS_COST_KINDS; i++) {
		/* Totals of several counters that are not read at the same time can appear to decrease. */
		uint64_t fresh = totals[i] > a->seen[i] ? totals[i] - a->seen[i] : 0;
		double ns = cost[i] > 0 ? cost[i] * (double)fresh : 0;

		a->seen[i] += fresh;
		a->spent[i] += ns;
		a->lately[i] += ns;
	}
}

void nps_account__price_anew(struct nps_account *a, const double cost[NPS_COST_KINDS])
{
	for (int i = 0; i < NPS_COST_KINDS; i++) {
		double ns = cost[i] > 0 ? cost[i] : 0;

		a->spent[i] = ns * (double)a->seen[i];
		a->lately[i] = ns * (double)(a->seen[i] - a->judged[i]);
	}
}

double nps_account__sum_of_classes(const double kinds[NPS_COST_KINDS], enum nps_cost_kind first)
{
	double all = 0;

	for (int class = 0; class < NPS_PROBE_CLASSES; class ++)
		all += kinds[first + class];
	return all;
}

double nps_account__sum(const double kinds[NPS_COST_KINDS])
{
	double all = 0;

	for (int i = 0; i < NPS_COST_KINDS; i++)
		all += kinds[i];
	return all;
}

/* What the stage saves, ns. Costs of calls are not known by tier. */
static double saves(enum nps_shed what, const double lately[NPS_COST_KINDS])
{
	switch (what) {
	case NPS_SHED_RECORDS:
		return lately[NPS_COST_SYSCALL];
	case NPS_SHED_SYSCALLS:
		return lately[NPS_COST_SYSCALL] + lately[NPS_COST_SUM];
	case NPS_SHED_SCHED:
		return lately[NPS_COST_SWITCH];
	default:
		return nps_account__sum_of_classes(lately, NPS_COST_CALL) +
		       nps_account__sum_of_classes(lately, NPS_COST_MARK);
	}
}

/* Skips a stage for now, not for good: the job may do something else later. */
static int stage_choose(const struct nps_account *a, double all, const bool can[NPS_SHED_STAGES])
{
	for (int what = 0; what < NPS_SHED_STAGES; what++)
		if (can[what] && !(a->dropped >> what & 1) && saves(what, a->lately) > WORTH * all)
			return what;
	return -1;
}

int nps_account__judge(struct nps_account *a, uint64_t cpu_ns, double limit, const bool can[NPS_SHED_STAGES],
		       double *percent)
{
	double all = nps_account__sum(a->lately);
	uint64_t used = cpu_ns > a->cpu_seen ? cpu_ns - a->cpu_seen : 0;
	int what = -1;

	*percent = -1;
	if (used < LEAST_CPU_NS)
		return -1;
	*percent = 100 * all / (double)used;
	if (limit > 0 && *percent > limit)
		what = stage_choose(a, all, can);
	if (what >= 0)
		a->dropped |= 1U << what;
	a->cpu_seen = cpu_ns;
	memset(a->lately, 0, sizeof(a->lately));
	memcpy(a->judged, a->seen, sizeof(a->judged));
	return what;
}
