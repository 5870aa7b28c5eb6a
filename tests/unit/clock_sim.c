/* SPDX-License-Identifier: BSD-2-Clause */
#include "clock_sim.h"

#include <math.h>

void sim_start(struct sim_clock *clock, double hz, double ppm, uint64_t seed)
{
	clock->host0 = 5000000000000ULL;
	clock->counter0 = 123456789000ULL;
	clock->hz = hz;
	clock->random = seed * 2654435761u + 88172645463325252ULL;
	clock->n = 1;
	clock->segments[0] = (struct sim_segment){ .rate = ppm * 1e-6 };
}

double sim_random(struct sim_clock *clock)
{
	clock->random ^= clock->random << 13;
	clock->random ^= clock->random >> 7;
	clock->random ^= clock->random << 17;
	return (double)(clock->random >> 11) / 9007199254740992.0;
}

static double ticks_at(const struct sim_clock *clock, double ns)
{
	size_t i = clock->n - 1;

	while (i && clock->segments[i].host > ns)
		i--;
	return clock->segments[i].ticks +
	       (ns - clock->segments[i].host) * clock->hz / 1e9 * (1 + clock->segments[i].rate);
}

void sim_step(struct sim_clock *clock, double seconds, double ppm)
{
	struct sim_segment segment = { .host = seconds * 1e9,
				       .ticks = ticks_at(clock, seconds * 1e9),
				       .rate = ppm * 1e-6 };

	clock->segments[clock->n++] = segment;
}

uint64_t sim_counter(const struct sim_clock *clock, double ns)
{
	return clock->counter0 + (uint64_t)(int64_t)floor(ticks_at(clock, ns));
}

static double way(struct sim_clock *clock, const struct sim_read *how)
{
	return how->least + sim_random(clock) * how->spread;
}

void sim_burst(struct sim_clock *clock, const struct sim_read *how, double after,
	       struct nps_device_clock *reads, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double there = way(clock, how), back = way(clock, how) + sim_random(clock) * how->jitter,
		       seen;

		if (sim_random(clock) < how->outliers) {
			if (sim_random(clock) < 0.5)
				there += how->outlier_ns;
			else
				back += how->outlier_ns;
		}
		seen = after + there;
		if (sim_random(clock) < how->liars)
			seen += (sim_random(clock) < 0.5 ? -1 : 1) * how->lie_ns;
		reads[i] = (struct nps_device_clock){ .raw_before = clock->host0 + (uint64_t)after,
						      .raw_after = clock->host0 +
								   (uint64_t)ceil(after + there + back),
						      .counter = sim_counter(clock, seen) };
		after += there + back + 200;
	}
}
