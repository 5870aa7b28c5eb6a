/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one clock: from a device's counter to the host's CLOCK_MONOTONIC_RAW, and from there to
 * CLOCK_MONOTONIC, with a bound of the error at every point; see docs/clocks.md.
 */
#ifndef NPS_CLOCK_MAP_H
#define NPS_CLOCK_MAP_H

#include "clock/outlier_filter.h"
#include "session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPS_RATE_UNKNOWN 100e-6 /* how far off an oscillator may be that nobody measured */

/* The map is straight from one knot to the next. */
struct nps_clock_knot {
	uint64_t counter, host;
	double rate; /* ns a tick from here on */
	double error; /* ns, from here to the next knot */
};

/* The knots of one life of the counter. */
struct nps_clock_span {
	size_t first, n;
	double growth[2]; /* of the error, ns per ns before the first knot and after the last */
};

/*
 * A moment that the host and the device both recorded: the map's time of COUNTER is too early (shift > 0)
 * or too late by at least `shift`.
 */
struct nps_clock_mark {
	uint64_t counter;
	double shift; /* ns */
};

/* Zero is a map that knows nothing. */
struct nps_clock_map {
	struct nps_outlier_filter filter;
	struct nps_clock_knot *knots;
	size_t n;
	struct nps_clock_span spans[NPS_CLOCK_EPOCHS];
	size_t nspans;
	double nominal; /* ns a tick */
	/* for reports */
	size_t samples, used; /* reads; those that the map agrees with */
	size_t lines; /* segments that the reads need */
	size_t marks; /* that made the map better */
	double drift_ppm; /* against the nominal frequency, over all; positive = fast */
	double error, worst; /* ns: median; greatest */
};

struct nps_instant {
	uint64_t ns;
	double error; /* ns, in either direction */
};

/*
 * Fits N reads (any order, not trusted) of one device's counter of HZ. One read, or reads of one moment,
 * result in the nominal rate, and in an error that grows with NPS_RATE_UNKNOWN. 0; -ENODATA without a
 * usable read or HZ; -EILSEQ if the reads contradict each other or HZ; -ENOMEM. On failure the map knows
 * nothing.
 */
int nps_clock_map__fit(struct nps_clock_map *map, const struct nps_device_clock *reads, size_t n,
		       uint64_t hz);

/*
 * Changes the map so that it agrees with N marks, as far as its error admits. Returns how many contradict
 * it by more than its error, and were left out, or -ENOMEM, after which the map is as before.
 */
long nps_clock_map__refine(struct nps_clock_map *map, const struct nps_clock_mark *marks, size_t n);

void nps_clock_map__free(struct nps_clock_map *map);

/*
 * CLOCK_MONOTONIC_RAW ns at which the counter stood at COUNTER. CURSOR (first: 0) makes calls with
 * ascending counts constant in time. Never falls where the counter grows. False if the map knows nothing or
 * that would be no time.
 */
bool nps_clock_map__at(const struct nps_clock_map *map, uint64_t counter, size_t *cursor,
		       struct nps_instant *at);

/* From CLOCK_MONOTONIC_RAW to Unix time: by the samples, if any, to CLOCK_MONOTONIC, and on by `offset`. */
struct nps_clock_host {
	const struct nps_clock *samples; /* sorted by raw; not owned */
	size_t n;
	int64_t offset; /* ns */
};

/*
 * CLOCK_MONOTONIC at RAW ns of CLOCK_MONOTONIC_RAW, and what reading both clocks adds to the error:
 * straight between the N samples, which are sorted by raw; outside, the offset of the nearest one. RAW
 * itself if there are none.
 */
struct nps_instant nps_host_mono(const struct nps_clock *samples, size_t n, uint64_t raw, size_t *cursor);

/* Unix time at RAW ns of CLOCK_MONOTONIC_RAW, and what that adds to the error. CURSOR as above. */
struct nps_instant nps_host_unix(const struct nps_clock_host *host, uint64_t raw, size_t *cursor);

#endif
