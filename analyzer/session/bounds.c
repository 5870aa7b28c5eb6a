/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host bounds: what the host's calls prove about a task whose times nobody measured. A stream
 * is in order, so every bound holds for its neighbours too, forwards and backwards.
 */
#include "session/join.h"

static void lower(const struct nps_sub *const *subs, const struct nps_task *const *tasks, size_t n,
		  struct nps_bounds *bounds)
{
	uint64_t low = 0;

	for (size_t i = 0; i < n; i++) {
		low = NPS_MAX(low, subs[i]->begin);
		if (tasks[i]) {
			low = NPS_MAX(low, tasks[i]->start);
			continue;
		}
		bounds[i] = (struct nps_bounds){ low, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	}
}

static void upper(const struct nps_sub *const *subs, const struct nps_task *const *tasks, size_t n,
		  const struct nps_sync *syncs, size_t nsyncs, struct nps_bounds *bounds)
{
	uint64_t high = UINT64_MAX;

	for (size_t i = n; i-- > 0;) {
		for (; nsyncs && syncs[nsyncs - 1].cover >= subs[i]->end; nsyncs--)
			high = NPS_MIN(high, syncs[nsyncs - 1].done);
		if (tasks[i])
			high = NPS_MIN(high, tasks[i]->end);
		else
			bounds[i].end_high = NPS_MAX(high, bounds[i].start_low);
	}
}

void nps_bounds__stream(const struct nps_sub *const *subs, const struct nps_task *const *tasks, size_t n,
			const struct nps_sync *syncs, size_t nsyncs, struct nps_bounds *bounds)
{
	lower(subs, tasks, n, bounds);
	upper(subs, tasks, n, syncs, nsyncs, bounds);
}
