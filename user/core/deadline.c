/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/deadline.h"

#include <time.h>

#include "core/clocks.h"

void nps_deadline__init(struct nps_deadline *d, uint64_t ns)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC);

	*d = (struct nps_deadline){
		.left = ns, .checked = now, .end = now + 3 * ns, .cpu = nps_now(CLOCK_THREAD_CPUTIME_ID)
	};
}

uint64_t nps_deadline__left(struct nps_deadline *d)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC), cpu = nps_now(CLOCK_THREAD_CPUTIME_ID);
	uint64_t elapsed = now - d->checked, ran = cpu - d->cpu;

	if (elapsed > NPS_DEADLINE_TURN_NS)
		elapsed = NPS_DEADLINE_TURN_NS;
	if (elapsed < ran)
		elapsed = ran;
	d->checked = now;
	d->cpu = cpu;
	d->left -= elapsed < d->left ? elapsed : d->left;
	if (now >= d->end)
		d->left = 0;
	return d->left;
}
