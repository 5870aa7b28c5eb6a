/* SPDX-License-Identifier: BSD-2-Clause */
#include "clock/outlier_filter.h"

#include "base/util.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH_MAX 1000000000ULL /* ns; a read that took longer is not used */
#define BURST_NS 2e6 /* reads that are one sample */
#define BURST_RATE 200e-6 /* how far the rate may be off the nominal one, within a burst */
#define TRACK_SLACK 1e6 /* ns; smaller lies are found by what is around them */

/* A read, or what several agree on: the counter stood at COUNTER between host + early and host + late. */
struct clock_sample {
	uint64_t counter, host;
	double early, late; /* ns */
	double x, lo, hi; /* the same as a bracket, from some zero */
	uint32_t reads, track;
};

/* Reads that one oscillator could have made. */
struct sample_track {
	double first, last, y, width; /* host time of the first and last read, y and width of the last */
	size_t n;
	uint32_t id;
	bool kept;
};

static int by_host(const void *a, const void *b)
{
	const struct clock_sample *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return x->counter < y->counter ? -1 : x->counter > y->counter;
}

/* A tick's number stands for its middle, so a read may be off by half a tick in either direction. */
static size_t collect_usable(struct clock_sample *s, const struct nps_device_clock *reads, size_t n,
			     double nominal)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct nps_device_clock *r = &reads[i];

		if (r->raw_after < r->raw_before || r->raw_after - r->raw_before >= WIDTH_MAX ||
		    !r->counter || r->raw_before > INT64_MAX / 2)
			continue;
		s[kept++] =
			(struct clock_sample){ .counter = r->counter,
					       .host = r->raw_before,
					       .early = -nominal / 2,
					       .late = (double)(r->raw_after - r->raw_before) + nominal / 2,
					       .reads = 1 };
	}
	qsort(s, kept, sizeof(*s), by_host);
	return kept;
}

/* The counter wraps: its differences have a sign. */
static void sample_rebase(struct clock_sample *s, const struct clock_sample *zero, double nominal)
{
	s->x = (double)(int64_t)(s->counter - zero->counter) * nominal;
	s->lo = (double)(int64_t)(s->host - zero->host) - s->x + s->early;
	s->hi = s->lo + s->late - s->early;
}

/* --- bursts --- */

struct edge {
	double y;
	int step; /* 1 begins, -1 ends */
};

static int by_y(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->y != y->y)
		return x->y < y->y ? -1 : 1;
	return y->step - x->step; /* touching is agreeing */
}

/*
 * The stretch that most samples agree on (Marzullo's algorithm). Returns how many agree. Samples are
 * widened by what the rate can be off between them and the bracket.
 */
static size_t agree(const struct clock_sample *s, size_t n, struct edge *edges, struct clock_sample *out)
{
	size_t best = 0;
	long open = 0;

	for (size_t i = 0; i < n; i++) {
		double slack = fabs(s[i].x - out->x) * BURST_RATE;

		edges[2 * i] = (struct edge){ s[i].lo - slack, 1 };
		edges[2 * i + 1] = (struct edge){ s[i].hi + slack, -1 };
	}
	qsort(edges, 2 * n, sizeof(*edges), by_y);
	for (size_t i = 0; i + 1 < 2 * n; i++) {
		open += edges[i].step;
		if (edges[i].step > 0 && edges[i + 1].step < 0 && open > (long)best) {
			best = open;
			out->lo = edges[i].y;
			out->hi = edges[i + 1].y;
		}
	}
	if (n == 2 && best < 2) { /* one of them is wrong: either */
		out->lo = edges[0].y;
		out->hi = edges[3].y;
		best = 2;
	}
	return best;
}

/* Samples S[0..n) of a burst become one, OUT. False if they contradict each other. EDGES: two a sample. */
static bool burst_join(struct clock_sample *out, struct clock_sample *s, size_t n, struct edge *edges,
		       double nominal)
{
	const struct clock_sample zero = s[0];
	size_t narrow = 0, good;

	for (size_t i = 0; i < n; i++) {
		sample_rebase(&s[i], &zero, nominal);
		if (s[i].hi - s[i].lo < s[narrow].hi - s[narrow].lo)
			narrow = i;
	}
	*out = s[narrow];
	good = agree(s, n, edges, out);
	out->reads = good;
	out->host = zero.host;
	out->early = out->lo + out->x;
	out->late = out->hi + out->x;
	return 2 * good > n;
}

/* Reads that follow each other closely become one sample, in place. Returns the number of samples. */
static size_t join_bursts(struct clock_sample *s, size_t n, struct edge *edges, double nominal)
{
	size_t kept = 0;

	for (size_t i = 0, end; i < n; i = end) {
		struct clock_sample joined;

		for (end = i + 1; end < n && (double)(s[end].host - s[i].host) < BURST_NS;)
			end++;
		if (burst_join(&joined, s + i, end - i, edges, nominal))
			s[kept++] = joined;
	}
	return kept;
}

/* --- tracks --- */

/* How far the sample is off the track's prediction; negative: more than brackets and oscillators explain. */
static double distance(const struct sample_track *t, const struct clock_sample *s, double host)
{
	double off = fabs((s->lo + s->hi) / 2 - t->y), width = s->hi - s->lo;

	return off > (width + t->width) / 2 + NPS_RATE_MAX * (host - t->last) + TRACK_SLACK ? -1 : off;
}

static struct sample_track *smallest(struct sample_track *tracks, size_t n)
{
	struct sample_track *found = tracks;

	for (size_t t = 1; t < n; t++)
		if (tracks[t].n < found->n)
			found = &tracks[t];
	return found;
}

/* Assigns a track to every sample; of too many tracks the smallest is dropped. Returns how many there are. */
static size_t find_tracks(struct sample_track *tracks, struct clock_sample *s, size_t n)
{
	size_t ntracks = 0;
	uint32_t ids = 0;

	for (size_t i = 0; i < n; i++) {
		double host = (double)(s[i].host - s[0].host), width = s[i].hi - s[i].lo, best = INFINITY;
		struct sample_track *to = NULL;

		for (size_t t = 0; t < ntracks; t++) {
			double off = distance(&tracks[t], &s[i], host);

			if (off >= 0 && off < best)
				to = &tracks[t], best = off;
		}
		if (!to) {
			to = ntracks < NPS_CLOCK_EPOCHS ? &tracks[ntracks++] : smallest(tracks, ntracks);
			*to = (struct sample_track){ .first = host, .id = ++ids };
		}
		/* A narrow read decides where the track is; one that wide reads could not pull along. */
		if (!to->n || width <= to->width + 2 * NPS_RATE_MAX * (host - to->last)) {
			to->y = (s[i].lo + s[i].hi) / 2;
			to->width = width;
			to->last = host;
		}
		to->n++;
		s[i].track = to->id;
	}
	return ntracks;
}

static int by_size(const void *a, const void *b)
{
	const struct sample_track *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

static int by_first(const void *a, const void *b)
{
	const struct sample_track *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* Lives of a counter follow each other; reads within a greater life are wrong. Returns the reads kept. */
static size_t keep_tracks(struct sample_track *tracks, size_t n)
{
	size_t kept = 0;

	qsort(tracks, n, sizeof(*tracks), by_size);
	for (size_t i = 0; i < n; i++) {
		tracks[i].kept = i == 0 || tracks[i].n > 2;
		for (size_t j = 0; tracks[i].kept && j < i; j++)
			if (tracks[j].kept && tracks[i].first <= tracks[j].last &&
			    tracks[j].first <= tracks[i].last)
				tracks[i].kept = false;
		kept += tracks[i].kept ? tracks[i].n : 0;
	}
	return kept;
}

/* Samples of one track, in order, as brackets from the epoch's own zero. */
static int fill_epoch(struct nps_epoch *epoch, const struct clock_sample *s, size_t n, uint32_t track,
		      double nominal)
{
	const struct clock_sample *zero = NULL;

	*epoch = (struct nps_epoch){ .brackets = malloc(n * sizeof(*epoch->brackets)) };
	if (!epoch->brackets)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct clock_sample at = s[i];

		if (at.track != track)
			continue;
		if (!zero) {
			zero = &s[i];
			epoch->counter0 = at.counter;
			epoch->host0 = at.host;
		}
		sample_rebase(&at, zero, nominal);
		if (epoch->n && at.x <= epoch->brackets[epoch->n - 1].x)
			continue; /* the counter stood still */
		epoch->brackets[epoch->n++] =
			(struct nps_bracket){ .x = at.x, .lo = at.lo, .hi = at.hi, .reads = at.reads };
	}
	return 0;
}

static int filter_fill(struct nps_outlier_filter *filter, struct clock_sample *s, size_t n, double nominal)
{
	struct edge *edges = malloc(2 * n * sizeof(*edges));
	struct sample_track tracks[NPS_CLOCK_EPOCHS];
	size_t ntracks;
	int err = 0;

	if (!edges)
		return -ENOMEM;
	n = join_bursts(s, n, edges, nominal);
	free(edges);
	if (!n)
		return -EILSEQ;
	for (size_t i = 0; i < n; i++)
		sample_rebase(&s[i], &s[0], nominal);
	ntracks = find_tracks(tracks, s, n);
	if (2 * keep_tracks(tracks, ntracks) <= n)
		return -EILSEQ;
	qsort(tracks, ntracks, sizeof(*tracks), by_first);
	for (size_t t = 0; !err && t < ntracks; t++)
		if (tracks[t].kept)
			err = fill_epoch(&filter->epochs[filter->nepochs++], s, n, tracks[t].id, nominal);
	return err;
}

int nps_outlier_filter__fill(struct nps_outlier_filter *filter, const struct nps_device_clock *reads,
			     size_t n, double nominal)
{
	struct clock_sample *s = n ? malloc(n * sizeof(*s)) : NULL;
	size_t usable;
	int err;

	*filter = (struct nps_outlier_filter){ .reads = n };
	if (n && !s)
		return -ENOMEM;
	usable = n && nominal > 0 ? collect_usable(s, reads, n, nominal) : 0;
	err = usable ? filter_fill(filter, s, usable, nominal) : -ENODATA;
	free(s);
	if (err)
		nps_outlier_filter__free(filter);
	return err;
}

void nps_outlier_filter__free(struct nps_outlier_filter *filter)
{
	for (size_t i = 0; i < NPS_CLOCK_EPOCHS; i++)
		free(filter->epochs[i].brackets);
	memset(filter->epochs, 0, sizeof(filter->epochs));
	filter->nepochs = 0;
}
