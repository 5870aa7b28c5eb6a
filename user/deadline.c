/* SPDX-License-Identifier: BSD-2-Clause */
#include "deadline.h"

#include <time.h>

#include "clocks.h"

void nps_deadline__init(struct nps_deadline *d, uint64_t ns)
{
	*d = (struct nps_deadline){ .left = ns, .looked = nps_now(CLOCK_MONOTONIC) };
}

uint64_t nps_deadline__left(struct nps_deadline *d)
{
	uint64_t now = nps_now(CLOCK_MONOTONIC), elapsed = now - d->looked;

	if (elapsed > NPS_DEADLINE_TURN_NS)
		elapsed = NPS_DEADLINE_TURN_NS;
	d->looked = now;
	d->left -= elapsed < d->left ? elapsed : d->left;
	return d->left;
}
