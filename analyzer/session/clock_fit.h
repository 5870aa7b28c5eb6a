/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks: the device's counter -> CLOCK_MONOTONIC_RAW -> CLOCK_MONOTONIC. */
#ifndef NPS_CLOCK_FIT_H
#define NPS_CLOCK_FIT_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"

/*
 * raw = raw_ref + (counter - counter_ref) * ns_per_tick. Rate and offset come from a
 * weighted least-squares fit over the bracketed reads; the weight of a read falls
 * with the square of its bracket's width.
 */
struct nps_clock_fit {
	uint64_t counter_ref, raw_ref;
	double ns_per_tick;
	double drift_ppm; /* device's rate against its nominal frequency, positive = fast */
	double residual_ns; /* root mean square, weighted */
	double uncertainty_ns; /* half of the narrowest bracket */
	uint32_t samples, used;
};

/*
 * Fits the N reads of one device, whose nominal frequency is FREQ_KHZ. One read, or reads too
 * close together for a rate, give the nominal rate. 0; -ENODATA without a usable read.
 */
int nps_clock_fit__fit(struct nps_clock_fit *fit, const struct nps_device_clock *reads, size_t n,
		       uint64_t freq_khz);

/* CLOCK_MONOTONIC_RAW ns at which the counter stood at COUNTER. */
uint64_t nps_clock_fit__raw(const struct nps_clock_fit *fit, uint64_t counter);

/*
 * CLOCK_MONOTONIC ns at RAW ns of CLOCK_MONOTONIC_RAW: linear between the N samples, which are
 * sorted by raw; outside, the offset of the nearest one. RAW itself if there are none.
 */
uint64_t nps_raw_to_mono(const struct nps_clock *samples, size_t n, uint64_t raw);

#endif
