/* SPDX-License-Identifier: BSD-2-Clause */
#include "clock/map.h"

#include "base/util.h"

#include <math.h>
#include <stdlib.h>

/* Signed distance of two counters, which wrap. */
static int64_t ahead(uint64_t counter, uint64_t of)
{
	return (int64_t)(counter - of);
}

static uint64_t outside(const struct nps_clock_map *map, const struct nps_clock_span *span, uint64_t counter)
{
	const struct nps_clock_knot *first = &map->knots[span->first], *last = first + span->n - 1;

	if (ahead(counter, first->counter) < 0)
		return first->counter - counter;
	return ahead(counter, last->counter) > 0 ? counter - last->counter : 0;
}

/* The life of the counter that COUNTER is in, or the nearest one. */
static const struct nps_clock_span *span_of(const struct nps_clock_map *map, uint64_t counter)
{
	const struct nps_clock_span *best = map->spans;

	for (size_t i = 1; i < map->nspans; i++)
		if (outside(map, &map->spans[i], counter) < outside(map, best, counter))
			best = &map->spans[i];
	return best;
}

/* The last knot of SPAN that is not after COUNTER, or its first one. */
static size_t knot_of(const struct nps_clock_map *map, const struct nps_clock_span *span, uint64_t counter,
		      size_t hint)
{
	const struct nps_clock_knot *k = map->knots;
	size_t low = span->first, high = span->first + span->n - 1;

	/* where the last one was, or just after it */
	for (size_t i = hint; i >= low && i <= high && i < hint + 3; i++)
		if (ahead(counter, k[i].counter) >= 0 && (i == high || ahead(counter, k[i + 1].counter) < 0))
			return i;
	while (low < high) {
		size_t mid = low + (high - low + 1) / 2;

		if (ahead(counter, k[mid].counter) >= 0)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

bool nps_clock_map__at(const struct nps_clock_map *map, uint64_t counter, size_t *cursor,
		       struct nps_instant *at)
{
	const struct nps_clock_span *span;
	const struct nps_clock_knot *knot;
	double ns, host;
	bool before, after;

	if (!map->n)
		return false;
	span = map->nspans == 1 ? map->spans : span_of(map, counter);
	*cursor = knot_of(map, span, counter, *cursor);
	knot = &map->knots[*cursor];
	before = ahead(counter, knot->counter) < 0;
	after = *cursor == span->first + span->n - 1;
	/* Between two knots the difference is small, so a double holds it to a fraction of a ns. */
	ns = (double)ahead(counter, knot->counter) * knot->rate;
	host = (double)knot->host + ns;
	if (!(host >= 0 && host < 9e18))
		return false;
	at->ns = knot->host + (uint64_t)llround(ns);
	at->error = knot->error + (before || after ? fabs(ns) * span->growth[!before] : 0);
	return true;
}

/* mono - raw at a sample: mono was read somewhere between raw and raw_after. */
static double offset_of(const struct nps_clock *s)
{
	return (double)(int64_t)(s->mono - s->raw) -
	       (double)(s->raw_after > s->raw ? s->raw_after - s->raw : 0) / 2;
}

static double clock_width(const struct nps_clock *s)
{
	return s->raw_after > s->raw && s->raw_after - s->raw < 1000000000 ? (double)(s->raw_after - s->raw)
									   : 0;
}

/* The last sample that is not after RAW; N: RAW is before the first. */
static size_t sample_of(const struct nps_clock *s, size_t n, uint64_t raw, size_t hint)
{
	size_t low = 0, high = n;

	for (size_t i = hint; i < n && i < hint + 2; i++)
		if (s[i].raw <= raw && (i + 1 == n || s[i + 1].raw > raw))
			return i;
	while (low < high) { /* first sample after raw */
		size_t mid = low + (high - low) / 2;

		if (s[mid].raw <= raw)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : n;
}

/* How far the offset may be off the line between sample I and the next: its rate may change in between. */
static double bend(const struct nps_clock *s, size_t n, size_t i)
{
	double gap = (double)(s[i + 1].raw - s[i].raw),
	       rate = (offset_of(&s[i + 1]) - offset_of(&s[i])) / gap;
	double change = 0;

	if (i)
		change = fabs(rate -
			      (offset_of(&s[i]) - offset_of(&s[i - 1])) / (double)(s[i].raw - s[i - 1].raw));
	if (i + 2 < n)
		change = NPS_MAX(change, fabs((offset_of(&s[i + 2]) - offset_of(&s[i + 1])) /
						      (double)(s[i + 2].raw - s[i + 1].raw) -
					      rate));
	return change * gap / 4;
}

static struct nps_instant instant_moved(uint64_t raw, double offset, double error)
{
	int64_t by = fabs(offset) < 9e18 ? llround(offset) : 0, at;

	if (__builtin_add_overflow((int64_t)raw, by, &at))
		at = (int64_t)raw;
	return (struct nps_instant){ at < 0 ? 0 : (uint64_t)at, error };
}

struct nps_instant nps_host_mono(const struct nps_clock *samples, size_t n, uint64_t raw, size_t *cursor)
{
	const struct nps_clock *s;
	double part, a, b;
	size_t i;

	if (!n)
		return (struct nps_instant){ raw, 0 };
	i = sample_of(samples, n, raw, *cursor);
	*cursor = i == n ? 0 : i;
	s = &samples[*cursor];
	if (i == n || i + 1 == n)
		return instant_moved(raw, offset_of(s), clock_width(s) / 2);
	a = offset_of(s);
	b = offset_of(s + 1);
	part = (double)(raw - s->raw) / (double)(s[1].raw - s->raw);
	return instant_moved(raw, a + (b - a) * part,
			     NPS_MAX(clock_width(s), clock_width(s + 1)) / 2 + bend(samples, n, i));
}

struct nps_instant nps_host_unix(const struct nps_clock_host *host, uint64_t raw, size_t *cursor)
{
	struct nps_instant at = nps_host_mono(host->samples, host->n, raw, cursor);

	at.ns += (uint64_t)host->offset;
	return at;
}
