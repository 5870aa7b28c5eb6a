/* SPDX-License-Identifier: BSD-2-Clause */
/* From counters to Unix time, in exact integers (prof-raw 3). */
#ifndef NPS_CANN_CLOCK_H
#define NPS_CANN_CLOCK_H

#include "clock/map.h"

#include <stdbool.h>
#include <stdint.h>

#define NPS_NS_PER_S 1000000000ULL
#define NPS_CANN_HZ_MAX 10000000000ULL /* so that a remainder in ns fits 64 bits */

/*
 * Unix ns = zero + floor((count - count0) * 10^9 / hz), as the vendor's own tools compute it; where MAP is
 * set, it decides, as it is more exact.
 */
struct nps_cann_clock {
	bool known;
	uint64_t count0;
	uint64_t hz;
	int64_t zero;
	const struct nps_clock_map *map; /* of many reads of the counter; NULL: there is one. Not owned */
	struct nps_clock_host host; /* of the map */
};

/* DELTA ticks in ns, rounded down; a second's remainder times 10^9 fits 64 bits. */
static inline bool nps_cann_ticks__ns(uint64_t delta, uint64_t hz, uint64_t *ns)
{
	uint64_t whole;

	if (__builtin_mul_overflow(delta / hz, NPS_NS_PER_S, &whole))
		return false;
	*ns = delta % hz * NPS_NS_PER_S / hz;
	return !__builtin_add_overflow(whole, *ns, ns);
}

/* The same by the map. */
static inline bool nps_cann_clock__mapped(const struct nps_cann_clock *clock, uint64_t count,
					  uint64_t *unix_ns)
{
	size_t knot = 0, sample = 0;
	struct nps_instant at;

	if (!nps_clock_map__at(clock->map, count, &knot, &at))
		return false;
	*unix_ns = nps_host_unix(&clock->host, at.ns, &sample).ns;
	return *unix_ns > 0 && *unix_ns <= INT64_MAX;
}

/*
 * COUNT in Unix ns. False if that is no time between 1970 and 2262, or if COUNT is 0, which stands for a
 * time that was not recorded.
 */
static inline bool nps_cann_clock__unix(const struct nps_cann_clock *clock, uint64_t count, uint64_t *unix_ns)
{
	bool before = count < clock->count0;
	uint64_t delta = before ? clock->count0 - count : count - clock->count0, ns;
	int64_t at;

	if (!count)
		return false;
	if (clock->map)
		return nps_cann_clock__mapped(clock, count, unix_ns);
	if (!clock->known || !nps_cann_ticks__ns(delta, clock->hz, &ns) || ns > INT64_MAX)
		return false;
	if (before) /* rounding down means away from the sync point */
		ns += delta % clock->hz * NPS_NS_PER_S % clock->hz != 0;
	if (before ? __builtin_sub_overflow(clock->zero, (int64_t)ns, &at)
		   : __builtin_add_overflow(clock->zero, (int64_t)ns, &at))
		return false;
	*unix_ns = at;
	return at > 0;
}

#endif
