/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/clocks.h"

#define TRIES 5

uint64_t nps_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

void nps_clock__sample(struct nps_clock *best)
{
	for (int i = 0; i < TRIES; i++) {
		struct nps_clock c;

		c.raw = nps_now(CLOCK_MONOTONIC_RAW);
		c.mono = nps_now(CLOCK_MONOTONIC);
		c.real = nps_now(CLOCK_REALTIME);
		c.boot = nps_now(CLOCK_BOOTTIME);
		c.raw_after = nps_now(CLOCK_MONOTONIC_RAW);
		if (i == 0 || c.raw_after - c.raw < best->raw_after - best->raw)
			*best = c;
	}
}
