/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/clock_fit.h"

#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ns. Reads bracket the tasks, so even a poor rate errs by no more than the reads do;
 * but reads of one burst would be extrapolated. */
#define RATE_MIN_SPAN 10000000.0
#define RATE_MAX_PPM 500.0 /* no oscillator is worse: then the reads are wrong */
#define WIDTH_FLOOR 100.0 /* ns; keeps the weight of a zero-width bracket finite */

static uint64_t width(const struct nps_device_clock *read)
{
	return read->raw_after - read->raw_before;
}

static int usable(const struct nps_device_clock *read)
{
	return read->raw_after >= read->raw_before && width(read) < 1000000000 && read->counter;
}

static int by_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Widths up to here are kept: twice the lower quartile, which a few slow reads do not move. */
static int width_limit(const struct nps_device_clock *reads, size_t n, uint64_t *limit, uint64_t *least)
{
	uint64_t *widths = malloc(n * sizeof(*widths));
	size_t good = 0;

	if (!widths)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (usable(&reads[i]))
			widths[good++] = width(&reads[i]);
	if (good) {
		qsort(widths, good, sizeof(*widths), by_u64);
		*least = widths[0];
		*limit = widths[good / 4] * 2 + 1000;
	}
	free(widths);
	return good ? 0 : -ENODATA;
}

struct sums {
	double w, x, y, xx, xy, yy;
	double first, last; /* x of the kept reads */
	const struct nps_device_clock *ref; /* the narrowest, where x = y = 0 */
};

/* x = nominal ns since the reference read, y = what the host clock saw beyond that. */
static void add_read(struct sums *s, const struct nps_device_clock *read, double nominal)
{
	double x = ((double)(int64_t)(read->counter - s->ref->counter)) * nominal;
	double mid = (double)(int64_t)(read->raw_before - s->ref->raw_before) + width(read) / 2.0;
	double y = mid - width(s->ref) / 2.0 - x;
	double bracket = width(read) + WIDTH_FLOOR, w = 1.0 / (bracket * bracket);

	if (!s->w || x < s->first)
		s->first = x;
	if (!s->w || x > s->last)
		s->last = x;
	s->w += w;
	s->x += w * x;
	s->y += w * y;
	s->xx += w * x * x;
	s->xy += w * x * y;
	s->yy += w * y * y;
}

static void solve(struct nps_clock_fit *fit, const struct sums *s, double nominal)
{
	double mx = s->x / s->w, my = s->y / s->w;
	double varx = s->xx / s->w - mx * mx, cov = s->xy / s->w - mx * my;
	double slope = s->last - s->first >= RATE_MIN_SPAN && varx > 0 ? cov / varx : 0, var;

	assert(s->ref);
	if (fabs(slope) * 1e6 > RATE_MAX_PPM)
		slope = 0;
	var = s->yy / s->w - my * my - (slope ? slope * cov : 0);
	fit->ns_per_tick = nominal * (1 + slope);
	fit->drift_ppm = -slope / (1 + slope) * 1e6;
	fit->residual_ns = var > 0 ? sqrt(var) : 0;
	fit->counter_ref = s->ref->counter;
	/* The line at x = 0; llround keeps the sign of a small negative offset. */
	fit->raw_ref = s->ref->raw_before + width(s->ref) / 2 + (uint64_t)llround(my - slope * mx);
}

int nps_clock_fit__fit(struct nps_clock_fit *fit, const struct nps_device_clock *reads, size_t n,
		       uint64_t freq_khz)
{
	double nominal = freq_khz ? 1e6 / freq_khz : 0;
	struct sums s = { 0 };
	uint64_t limit = 0, least = 0;
	int err;

	*fit = (struct nps_clock_fit){ .samples = n };
	if (!n || !freq_khz)
		return -ENODATA;
	err = width_limit(reads, n, &limit, &least);
	if (err)
		return err;
	for (size_t i = 0; i < n && !s.ref; i++)
		if (usable(&reads[i]) && width(&reads[i]) == least)
			s.ref = &reads[i];
	assert(s.ref); /* the narrowest of the usable ones was found just before */
	for (size_t i = 0; i < n; i++) {
		if (!usable(&reads[i]) || width(&reads[i]) > limit)
			continue;
		add_read(&s, &reads[i], nominal);
		fit->used++;
	}
	fit->uncertainty_ns = least / 2.0;
	solve(fit, &s, nominal);
	return 0;
}

uint64_t nps_clock_fit__raw(const struct nps_clock_fit *fit, uint64_t counter)
{
	/* The difference is small, so a double holds it to a fraction of a ns over days. */
	double ns = (double)(int64_t)(counter - fit->counter_ref) * fit->ns_per_tick;

	if (!(ns > -9e18 && ns < 9e18))
		return 0;
	return fit->raw_ref + (uint64_t)llround(ns);
}

uint64_t nps_raw_to_mono(const struct nps_clock *samples, size_t n, uint64_t raw)
{
	size_t low = 0, high = n;
	int64_t a, b;
	double part;

	if (!n)
		return raw;
	while (low < high) { /* first sample after raw */
		size_t mid = low + (high - low) / 2;

		if (samples[mid].raw <= raw)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return raw + (samples[0].mono - samples[0].raw);
	a = samples[low - 1].mono - samples[low - 1].raw;
	if (low == n)
		return raw + a;
	b = samples[low].mono - samples[low].raw;
	part = (double)(raw - samples[low - 1].raw) / (double)(samples[low].raw - samples[low - 1].raw);
	return raw + a + llround((double)(b - a) * part);
}
