/* SPDX-License-Identifier: BSD-2-Clause */
/* From reads of a counter to the knots of a map, which moments that host and device recorded refine. */
#include "clock/map.h"
#include "clock/piecewise.h"

#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the rate beyond the outermost line can be off, against it. */
static double line_growth(const struct nps_line *line)
{
	double range = NPS_MAX(line->high - line->rate, line->rate - line->low);

	return NPS_MIN(range, NPS_RATE_UNKNOWN) + NPS_RATE_STRAY;
}

static double error_at(const struct nps_clock_map *map, const struct nps_clock_node *node)
{
	/* The counter resolves an event's time to half a tick, a knot is a whole ns. */
	return NPS_MAX(node->hi, -node->lo) + map->nominal / 2 + 1;
}

/* Knots are at whole ticks. Returns false if the counter had not moved since the last one. */
static bool make_knot(const struct nps_clock_map *map, const struct nps_epoch *epoch,
		      const struct nps_clock_node *node, const struct nps_clock_knot *last,
		      struct nps_clock_knot *knot)
{
	int64_t ticks = llround(NPS_MAX(-9.2e18, NPS_MIN(9.2e18, node->x / map->nominal)));

	*knot = (struct nps_clock_knot){ .counter = epoch->counter0 + (uint64_t)ticks,
					 .host = epoch->host0 +
						 (uint64_t)llround((double)ticks * map->nominal + node->y),
					 .error = error_at(map, node) };
	if (last && knot->host < last->host)
		knot->host = last->host;
	return !last || (int64_t)(knot->counter - last->counter) > 0;
}

static int map_add_span(struct nps_clock_map *map, const struct nps_epoch *epoch,
			const struct nps_piecewise *f)
{
	struct nps_clock_knot *knots = realloc(map->knots, (map->n + f->nnodes) * sizeof(*knots)),
			      *last = NULL;
	struct nps_clock_span *span = &map->spans[map->nspans];

	if (!knots)
		return -ENOMEM;
	assert(f->nnodes); /* a life of the counter has a bracket */
	map->knots = knots;
	*span = (struct nps_clock_span){ .first = map->n,
					 .growth = { line_growth(&f->first), line_growth(&f->last) } };
	for (size_t i = 0; i < f->nnodes; i++) {
		struct nps_clock_knot *knot = &knots[map->n];

		if (!make_knot(map, epoch, &f->nodes[i], last, knot)) {
			assert(last); /* the first node makes one */
			last->error = NPS_MAX(last->error, error_at(map, &f->nodes[i]));
			continue;
		}
		if (last) {
			/* between two nodes the error is at most the greater one, and half of the slack */
			last->error = NPS_MAX(last->error, knot->error) +
				      f->nodes[i - 1].slack * (f->nodes[i].x - f->nodes[i - 1].x) / 2;
			last->rate =
				(double)(knot->host - last->host) / (double)(knot->counter - last->counter);
		}
		last = knot;
		map->n++;
		span->n++;
	}
	assert(last);
	last->rate = map->nominal * (1 + f->last.rate);
	map->nspans++;
	map->lines += f->n;
	return 0;
}

/* Counts the reads in brackets that are part of the map. */
static size_t reads_used(const struct nps_outlier_filter *filter)
{
	size_t used = 0;

	for (size_t e = 0; e < filter->nepochs; e++)
		for (size_t i = 0; i < filter->epochs[e].n; i++)
			used += filter->epochs[e].brackets[i].reads;
	return used;
}

/* The figures for reports. */
static int map_describe(struct nps_clock_map *map)
{
	double *errors, host = 0, counted = 0;

	assert(map->n);
	errors = malloc(map->n * sizeof(*errors));
	if (!errors)
		return -ENOMEM;
	for (size_t i = 0; i < map->n; i++)
		errors[i] = map->knots[i].error;
	for (size_t s = 0; s < map->nspans; s++) {
		const struct nps_clock_knot *first = &map->knots[map->spans[s].first];
		const struct nps_clock_knot *last = first + map->spans[s].n - 1;

		host += (double)(last->host - first->host);
		counted += (double)(last->counter - first->counter) * map->nominal;
	}
	map->drift_ppm = host > 0 && counted > 0 ? (counted / host - 1) * 1e6 : 0;
	qsort(errors, map->n, sizeof(*errors), nps_by_double);
	map->error = errors[map->n / 2];
	map->worst = errors[map->n - 1];
	free(errors);
	return 0;
}

/* Knots from the brackets that the map has. */
static int draw(struct nps_clock_map *map)
{
	int err = 0;

	map->n = map->nspans = map->lines = 0;
	for (size_t e = 0; !err && e < map->filter.nepochs; e++) {
		struct nps_piecewise f;

		err = nps_piecewise__draw(&f, &map->filter.epochs[e]);
		err = err ? err : map_add_span(map, &map->filter.epochs[e], &f);
		nps_piecewise__free(&f);
	}
	return err ? err : map_describe(map);
}

int nps_clock_map__fit(struct nps_clock_map *map, const struct nps_device_clock *reads, size_t n, uint64_t hz)
{
	int err;

	*map = (struct nps_clock_map){ .samples = n };
	if (!hz)
		return -ENODATA;
	map->nominal = 1e9 / (double)hz;
	err = nps_outlier_filter__fill(&map->filter, reads, n, map->nominal);
	err = err ? err : draw(map);
	if (err) {
		nps_clock_map__free(map);
		return err;
	}
	map->used = reads_used(&map->filter);
	return 0;
}

/* --- marks --- */

/* The bracket of MARK, in the epoch of its span; false if it contradicts the map or adds nothing. */
static bool bracket_of(const struct nps_clock_map *map, const struct nps_clock_mark *mark,
		       const struct nps_epoch *epoch, const struct nps_instant *at, struct nps_bracket *b)
{
	double y;

	if (!(fabs(mark->shift) <= at->error) || mark->shift == 0)
		return false;
	b->reads = 0;
	b->x = (double)(int64_t)(mark->counter - epoch->counter0) * map->nominal;
	y = (double)(int64_t)(at->ns - epoch->host0) - b->x;
	b->lo = mark->shift > 0 ? y + mark->shift : y - at->error;
	b->hi = mark->shift > 0 ? y + at->error : y + mark->shift;
	return true;
}

/* The bracket of a mark, until all marks are known. */
struct found {
	struct nps_bracket bracket;
	size_t epoch, order; /* of the marks that were given */
};

static int bracket_compare(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	if (x->bracket.x != y->bracket.x)
		return x->bracket.x < y->bracket.x ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Narrows OUT to what B, which is at the same x, admits too, if they agree. */
static void bracket_narrow(struct nps_bracket *out, const struct nps_bracket *b)
{
	if (b->lo > out->hi || out->lo > b->hi)
		return;
	out->lo = NPS_MAX(out->lo, b->lo);
	out->hi = NPS_MIN(out->hi, b->hi);
}

/* The brackets of EPOCH, merged with N more, in order of x. 0 or -ENOMEM. */
static int epoch_merge(struct nps_epoch *epoch, const struct found *more, size_t n)
{
	struct nps_bracket *out = malloc((epoch->n + n) * sizeof(*out));
	size_t at = 0, len = 0;

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct nps_bracket *b = &more[i].bracket;

		for (; at < epoch->n && epoch->brackets[at].x <= b->x; at++)
			out[len++] = epoch->brackets[at];
		if (len && out[len - 1].x == b->x)
			bracket_narrow(&out[len - 1], b);
		else
			out[len++] = *b;
	}
	for (; at < epoch->n; at++)
		out[len++] = epoch->brackets[at];
	free(epoch->brackets);
	epoch->brackets = out;
	epoch->n = len;
	return 0;
}

static int merge_all(struct nps_outlier_filter *filter, struct found *found, size_t n)
{
	int err = 0;

	if (n)
		qsort(found, n, sizeof(*found), bracket_compare);
	for (size_t from = 0, to; !err && from < n; from = to) {
		for (to = from + 1; to < n && found[to].epoch == found[from].epoch;)
			to++;
		err = epoch_merge(&filter->epochs[found[from].epoch], found + from, to - from);
	}
	return err;
}

/* A map with what MAP was drawn from. */
static int map_copy(struct nps_clock_map *to, const struct nps_clock_map *map)
{
	*to = *map;
	to->knots = NULL;
	memset(to->filter.epochs, 0, sizeof(to->filter.epochs));
	for (size_t e = 0; e < map->filter.nepochs; e++) {
		const struct nps_epoch *from = &map->filter.epochs[e];
		struct nps_bracket *b = malloc((from->n + 1) * sizeof(*b));

		to->filter.epochs[e] = *from;
		to->filter.epochs[e].brackets = b;
		if (!b)
			return -ENOMEM;
		memcpy(b, from->brackets, from->n * sizeof(*b));
	}
	return 0;
}

long nps_clock_map__refine(struct nps_clock_map *map, const struct nps_clock_mark *marks, size_t n)
{
	struct nps_clock_map better;
	long contradict = 0;
	size_t cursor = 0;
	struct found *found = malloc((n + 1) * sizeof(*found));
	size_t nfound = 0;
	int err = map_copy(&better, map);

	if (!found)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < n; i++) {
		struct nps_instant at;
		struct nps_bracket b;
		size_t span;

		if (!nps_clock_map__at(map, marks[i].counter, &cursor, &at))
			continue;
		for (span = 0; span + 1 < map->nspans && cursor >= map->spans[span + 1].first;)
			span++;
		if (bracket_of(map, &marks[i], &better.filter.epochs[span], &at, &b)) {
			found[nfound] = (struct found){ b, span, nfound };
			nfound++;
			better.marks++;
		} else {
			contradict += marks[i].shift != 0;
		}
	}
	err = err ? err : merge_all(&better.filter, found, nfound);
	free(found);
	if (err || better.marks == map->marks)
		goto keep;
	err = draw(&better);
	if (err)
		goto keep;
	better.used = reads_used(&better.filter);
	nps_clock_map__free(map);
	*map = better;
	return contradict;
keep:
	nps_clock_map__free(&better);
	return err ? err : contradict;
}

void nps_clock_map__free(struct nps_clock_map *map)
{
	nps_outlier_filter__free(&map->filter);
	free(map->knots);
	map->knots = NULL;
	map->n = map->nspans = 0;
}
