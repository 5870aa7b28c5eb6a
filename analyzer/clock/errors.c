/* SPDX-License-Identifier: BSD-2-Clause */
#include "clock/errors.h"

#include <errno.h>
#include <math.h>

#define ROW_NS 1000000000ULL
#define ROWS_MAX 100000U /* then they become longer */

struct errors {
	struct nps_model *model;
	const struct nps_clock_map *map;
	const struct nps_clock_host *host;
	uint32_t device, source;
	uint64_t from, end, step; /* Unix ns: where the next row begins; of all; least length of a row */
	double worst; /* since `from` */
	size_t cursor;
	int err;
};

static void end_row(struct errors *e, uint64_t end)
{
	struct nps_clock_table *t = &e->model->clock;
	size_t row;

	if (e->err || end <= e->from)
		return;
	e->err = nps_table__add(&t->t, &row);
	if (e->err)
		return;
	t->start[row] = e->from;
	t->end[row] = end;
	t->device[row] = e->device;
	t->error[row] = (int64_t)ceil(NPS_MIN(e->worst, 9e18));
	t->source[row] = e->source;
	e->from = end;
	e->worst = 0;
}

/* Up to TO the error is ERROR, or less. */
static void stretch(struct errors *e, uint64_t to, double error)
{
	to = NPS_MIN(to, e->end);
	if (to <= e->from)
		return;
	e->worst = NPS_MAX(e->worst, error);
	if (to - e->from >= e->step)
		end_row(e, to);
}

/* From `from` to TO, away from a knot at AT: the farther, the worse. */
static void away(struct errors *e, uint64_t to, uint64_t at, double error, double growth)
{
	to = NPS_MIN(to, e->end);
	while (!e->err && e->from < to) {
		uint64_t next = to - e->from > e->step ? e->from + e->step : to;
		uint64_t far = NPS_MAX(e->from > at ? e->from - at : at - e->from,
				       next > at ? next - at : at - next);

		e->worst = NPS_MAX(e->worst, error + (double)far * growth);
		end_row(e, next);
	}
}

static void segment_error(struct errors *e, size_t s)
{
	const struct nps_clock_span *span = &e->map->spans[s];
	const struct nps_clock_knot *knots = &e->map->knots[span->first];
	struct nps_instant at = nps_host_unix(e->host, knots[0].host, &e->cursor);

	/* before it; after a reset the nearer of the two lives is not known */
	away(e, at.ns, at.ns, knots[0].error + at.error, s ? NPS_RATE_UNKNOWN : span->growth[0]);
	for (size_t i = 0; i + 1 < span->n; i++) {
		double error = knots[i].error + at.error;

		at = nps_host_unix(e->host, knots[i + 1].host, &e->cursor);
		stretch(e, at.ns, NPS_MAX(error, knots[i].error + at.error));
	}
	end_row(e, NPS_MIN(at.ns, e->end));
	if (s + 1 == e->map->nspans)
		away(e, e->end, at.ns, knots[span->n - 1].error + at.error, span->growth[1]);
}

int nps_clock_errors(struct nps_model *model, const struct nps_clock_map *map,
		     const struct nps_clock_host *host, uint32_t device, uint64_t begin, uint64_t end)
{
	struct errors e = {
		.model = model, .map = map, .host = host, .device = device, .from = begin, .end = end
	};

	if (!map->n || end <= begin)
		return 0;
	e.step = NPS_MAX(ROW_NS, (end - begin) / ROWS_MAX);
	e.source = nps_strings__addz(model->strings, map->samples > 1 ? "measured" : "assumed");
	if (e.source == NPS_NONE)
		return -ENOMEM;
	for (size_t s = 0; s < map->nspans; s++)
		segment_error(&e, s);
	return e.err;
}

int64_t nps_clock_error_at(const struct nps_model *model, uint32_t device, uint64_t time)
{
	const struct nps_clock_table *t = &model->clock;
	size_t low = 0, high = t->t.len;

	while (low < high) { /* the first row that is after it */
		size_t mid = low + (high - low) / 2;

		if (t->device[mid] < device || (t->device[mid] == device && t->start[mid] <= time))
			low = mid + 1;
		else
			high = mid;
	}
	if (low && t->device[low - 1] == device && time <= t->end[low - 1])
		return t->error[low - 1];
	return -1;
}
