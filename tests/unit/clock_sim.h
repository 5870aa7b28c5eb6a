/* SPDX-License-Identifier: BSD-2-Clause */
/* A device's counter whose every tick is known, and reads of it as a driver gives them. */
#ifndef CLOCK_SIM_H
#define CLOCK_SIM_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"

#define SIM_SEGMENTS 4096

/*
 * From host time `host` on the counter makes `rate` ticks a ns more than nominal,
 * per tick; ns are doubles from `host0`.
 */
struct sim_segment {
	double host, ticks, rate;
};

struct sim_clock {
	uint64_t host0, counter0; /* where both begin */
	double hz;
	struct sim_segment segments[SIM_SEGMENTS];
	size_t n;
	uint64_t random;
};

/* How a read goes; ns. */
struct sim_read {
	double least, spread; /* each way takes so long */
	double jitter; /* more, on one way only */
	double outliers; /* share of reads that take outlier_ns longer */
	double outlier_ns;
	double liars; /* share of reads whose counter is wrong by lie_ns */
	double lie_ns;
};

void sim_start(struct sim_clock *clock, double hz, double ppm, uint64_t seed);
/* From SECONDS on the rate is PPM off the nominal one. In order. */
void sim_step(struct sim_clock *clock, double seconds, double ppm);
/* In [0, 1) */
double sim_random(struct sim_clock *clock);
/* The counter, host ns after the start. */
uint64_t sim_counter(const struct sim_clock *clock, double ns);
/* Reads the counter N times in a row, from host ns AFTER on. */
void sim_burst(struct sim_clock *clock, const struct sim_read *how, double after,
	       struct nps_device_clock *reads, size_t n);

#endif
