/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which launch begins an iteration. Anchors are one launch of each iteration, any one. Of a sequence that
 * repeats each launch could be the first; the first one is that before which the host waits, where sequences
 * go on that something has interrupted, and which comes after the update of the parameters.
 */
#include "derive/period_search.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>

#define SAMPLES 31 /* iterations of which gaps are compared; fewer of long ones */
#define SAMPLES_MIN 5
#define GAPS 500000 /* that are compared in all */
#define SAME_KIND 0.9 /* share of the longer one that two kinds begin and end with, which are one */
#define ALIKE 0.3 /* share of a kind that an irregular iteration begins and ends with */

#define GAP_USUAL 1.5 /* times the mean of the others is the longest gap where there is no pause */
#define GAP_LEAST 0.1

/* How much speaks for a launch as the first one, as shares of 1. */
#define WEIGHT_GAP 1.0
#define WEIGHT_RESUME 1.0
#define WEIGHT_UPDATE 0.5
#define WEIGHT_UPDATE_SOON 0.3
#define WEIGHT_CLOSING 0.3

struct begin_search {
	const struct nps_period_cut *plan;
	const struct nps_period_text *text;
	const struct nps_period_kind *main;
	bool rotates; /* all segments are of one kind: any launch of it can be the first */
	long low, high; /* offsets from an anchor at which an iteration can begin: from LOW to below HIGH */
	long shift; /* the one chosen */
	double *scores; /* by offset - low */
	uint32_t samples[SAMPLES]; /* anchors between segments that are exactly repeated */
	unsigned int nsamples;
	struct nps_vec bounds; /* uint32_t */
};

/* Offsets that are the same launch in all kinds, if segments are of several. */
static void range_set(struct begin_search *c)
{
	struct nps_period_kinds *kinds = c->plan->kinds;
	uint64_t own = 0;

	for (uint32_t i = 0; i < kinds->ntop; i++) {
		const struct nps_period_kind *kind = nps_period_kinds__top(kinds, i);
		size_t most = NPS_MIN(kind->len, c->main->len), after, before;

		after = nps_period_text__same_after(c->text, kind->start, c->main->start, most);
		before = nps_period_text__same_before(c->text, kind->start + kind->len,
						      c->main->start + c->main->len, most);
		c->high = NPS_MIN(c->high, (long)after + 1);
		c->low = NPS_MAX(c->low, -(long)before);
		if (after + before >= NPS_NEAR_MIN * NPS_MAX(kind->len, c->main->len))
			own += (uint64_t)kind->count * kind->len;
	}
	c->rotates = own * 10 >= kinds->covered * 9;
	if (c->rotates) {
		c->low = 0;
		c->high = c->main->len;
	}
}

static void samples_choose(struct begin_search *c)
{
	const uint32_t *at = c->plan->anchors;
	size_t most =
		NPS_MAX(NPS_MIN((size_t)SAMPLES, (size_t)GAPS / (c->high - c->low)), (size_t)SAMPLES_MIN);
	size_t n = c->plan->count, step = NPS_MAX(n / most, (size_t)1);

	for (size_t i = 1; i + 1 < n && c->nsamples < most; i += step) {
		struct nps_period_kind *before = nps_period_kinds__find(c->plan->kinds, at[i - 1], at[i]);
		struct nps_period_kind *after = nps_period_kinds__find(c->plan->kinds, at[i], at[i + 1]);

		if (before && after && (!c->rotates || after == c->main))
			c->samples[c->nsamples++] = at[i];
	}
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The time between the launch before OFFSET and that at it. The third quartile: with evaluations between,
 * not every iteration follows a pause, and a few pauses are longer for other reasons.
 */
static uint64_t gap_at(const struct begin_search *c, long offset)
{
	const uint64_t *times = c->plan->in->times;
	uint64_t gaps[SAMPLES] = { 0 };
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->nsamples; i++) {
		size_t at = c->samples[i] + offset;

		if (at && at < c->text->len)
			gaps[n++] = nps_span(times[at - 1], times[at]);
	}
	if (!n)
		return 0;
	qsort(gaps, n, sizeof(*gaps), compare_u64);
	return gaps[n * 3 / 4];
}

/* A gap counts the more the longer it is, and all of them little if none is much longer than the others. */
static void score_gaps(struct begin_search *c)
{
	size_t n = c->high - c->low;
	double most = 0, sum = 0, weight;

	if (!c->plan->in->times || n < 2)
		return;
	for (size_t i = 0; i < n; i++) {
		c->scores[i] = gap_at(c, c->low + (long)i);
		most = NPS_MAX(most, c->scores[i]);
		sum += c->scores[i];
	}
	if (most <= 0)
		return;
	weight = most * (n - 1) / NPS_MAX(sum - most, 1.0) - GAP_USUAL;
	weight = NPS_MIN(NPS_MAX(weight / GAP_USUAL, GAP_LEAST), 1.0);
	for (size_t i = 0; i < n; i++)
		c->scores[i] *= weight * WEIGHT_GAP / most;
}

static void score_add(struct begin_search *c, long offset, double score)
{
	if (c->rotates) {
		offset %= (long)c->main->len;
		offset += offset < 0 ? (long)c->main->len : 0;
	}
	if (offset >= c->low && offset < c->high)
		c->scores[offset - c->low] += score;
}

/* Where the main kind goes on after something else, and how the sequence begins. */
static void score_resumptions(struct begin_search *c)
{
	const uint32_t *at = c->plan->anchors;
	uint32_t end = c->main->start + c->main->len, all = 0;
	size_t same = nps_period_text__same_before(c->text, at[0], end, c->main->len);

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i + 1 < c->plan->count; i++) {
			struct nps_period_kinds *kinds = c->plan->kinds;
			size_t unused, back;

			if (nps_period_kinds__find(kinds, at[i], at[i + 1]) ||
			    nps_period_kinds__similar(kinds, at[i], at[i + 1], &unused) != c->main)
				continue;
			back = nps_period_text__same_before(c->text, at[i + 1], end, c->main->len);
			if (pass)
				score_add(c, -(long)back, WEIGHT_RESUME / (all + 2));
			else
				all++;
		}
		all += !pass;
	}
	score_add(c, -(long)same, WEIGHT_RESUME / (all + 2));
}

/*
 * The longest part of the main kind that updates no parameters begins an iteration, or soon after its
 * beginning one does: an iteration may read its loss in the end.
 */
static void score_updates(struct begin_search *c)
{
	const uint32_t *symbols = c->text->symbols + c->main->start;
	size_t len = c->main->len, first = len, last = 0, best = 0, longest = 0, window;

	if (!c->rotates || !c->plan->in->updates)
		return;
	for (size_t i = 0; i < len; i++) {
		if (!c->plan->in->updates[symbols[i]])
			continue;
		if (first == len)
			first = i;
		else if (i - last > longest) {
			longest = i - last;
			best = last + 1;
		}
		last = i;
	}
	if (first == len)
		return;
	if (len - last + first > longest)
		best = last + 1;
	window = NPS_MIN(NPS_MAX(len / 10, (size_t)4), len);
	score_add(c, (long)best, WEIGHT_UPDATE);
	for (size_t i = 1; i < window; i++)
		score_add(c, (long)(best + i), WEIGHT_UPDATE_SOON * (double)(window - i) / (double)window);
}

/* Where segments are of several kinds: right after updates, which end what is the same in all. */
static void score_after_updates(struct begin_search *c)
{
	const uint8_t *updates = c->plan->in->updates;

	for (long d = c->low; updates && c->nsamples && d < c->high; d++) {
		size_t at = c->samples[0] + d;

		if (at && at < c->text->len && updates[c->text->symbols[at - 1]] &&
		    !updates[c->text->symbols[at]])
			c->scores[d - c->low] += WEIGHT_UPDATE;
	}
}

static void shift_choose(struct begin_search *c)
{
	long best = c->low;

	score_gaps(c);
	if (!c->rotates)
		score_after_updates(c);
	if (c->rotates) {
		score_resumptions(c);
		score_updates(c);
	}
	if (c->rotates && c->plan->closing != NPS_NONE) {
		size_t i = 0;

		while (i + 1 < c->plan->count && c->plan->anchors[i + 1] <= c->plan->closing)
			i++;
		score_add(c, (long)c->plan->closing - c->plan->anchors[i], WEIGHT_CLOSING);
	}
	for (long d = c->low; d < c->high; d++)
		if (c->scores[d - c->low] > c->scores[best - c->low])
			best = d;
	c->shift = best;
}

/* --- boundaries ---------------------------------------------------------------------------------------- */

static int bound_add(struct begin_search *c, size_t at)
{
	uint32_t *bound;

	if (c->bounds.len && at <= NPS_AT(&c->bounds, uint32_t, c->bounds.len - 1))
		return 0;
	bound = nps_vec__push(&c->bounds);
	if (!bound)
		return -errno;
	*bound = at;
	return 0;
}

/*
 * The beginning between the anchors FROM and TO, counted from either. Where both are known and differ,
 * something was put in there: if it is long, it is no part of an iteration.
 */
static int rotated_add(struct begin_search *c, const uint32_t *from, const uint32_t *to)
{
	const struct nps_period_kind *main = c->main;
	size_t forward = c->shift, back = main->len - c->shift;
	bool after, before;
	int err;

	after = from && nps_period_text__same_after(c->text, *from, main->start, forward) == forward &&
		*from + forward <= c->text->len;
	before = to && nps_period_text__same_before(c->text, *to, main->start + main->len, back) == back;
	if (after && to && *from + forward > *to)
		after = false;
	if (before && from && *to - back < *from)
		before = false;
	if (after && before && *to - back - (*from + forward) < main->len / 4)
		after = false;
	err = after ? bound_add(c, *from + forward) : 0;
	return err || !before ? err : bound_add(c, *to - back);
}

static int bounds_fill(struct begin_search *c)
{
	const uint32_t *at = c->plan->anchors;
	size_t n = c->plan->count;
	int err = 0;

	if (!c->rotates) {
		for (size_t i = 0; !err && i < n; i++)
			if ((long)at[i] + c->shift >= 0 && at[i] + c->shift < (long)c->text->len)
				err = bound_add(c, at[i] + c->shift);
		return err;
	}
	err = rotated_add(c, NULL, &at[0]);
	for (size_t i = 0; !err && i < n; i++)
		err = rotated_add(c, &at[i], i + 1 < n ? &at[i + 1] : NULL);
	return err;
}

/* --- steps --------------------------------------------------------------------------------------------- */

struct step_fill {
	struct nps_period_kinds kinds; /* of the final boundaries */
	struct nps_periods *found;
	uint64_t matched;
};

/* Numbers KIND; one that differs little from an earlier one, as by a line of a log, is the same. */
static void kind_number(struct step_fill *f, const struct nps_period_text *text, struct nps_period_kind *kind)
{
	for (uint32_t i = 0; i < f->kinds.ntop; i++) {
		const struct nps_period_kind *other = nps_period_kinds__top(&f->kinds, i);
		size_t most = NPS_MIN(kind->len, other->len), same;

		if (!other->number)
			continue;
		same = nps_period_text__same_after(text, kind->start, other->start, most);
		same += nps_period_text__same_before(text, kind->start + kind->len, other->start + other->len,
						     most - same);
		if (same < SAME_KIND * NPS_MAX(kind->len, other->len))
			continue;
		kind->number = other->number;
		return;
	}
	kind->number = ++f->found->kinds;
}

static int step_add(struct step_fill *f, struct nps_period_kind *kind, size_t first, size_t end,
		    bool irregular)
{
	struct nps_period_step *step = nps_vec__push(&f->found->steps);

	if (!step)
		return -errno;
	if (kind && !kind->number)
		kind_number(f, f->kinds.text, kind);
	*step = (struct nps_period_step){ first, end, kind ? kind->number : 0, irregular };
	return 0;
}

static int segment_add(struct begin_search *c, struct step_fill *f, size_t from, size_t to)
{
	struct nps_period_kind *kind = nps_period_kinds__find(&f->kinds, from, to);
	size_t same, len = to - from;

	if (kind) {
		f->matched += len;
		return step_add(f, kind, from, to, false);
	}
	kind = nps_period_kinds__similar(&f->kinds, from, to, &same);
	if (kind) {
		f->matched += same;
		if (same == kind->len && len - same >= kind->len / 2 &&
		    nps_period_text__same_after(c->text, from, kind->start, same) == same)
			return step_add(f, kind, from, from + same, false); /* what follows is none of it */
		return step_add(f, kind, from, to, true);
	}
	kind = nps_period_kinds__top(&f->kinds, 0);
	if (len > 2 * kind->len)
		return 0;
	same = nps_period_text__same_after(c->text, from, kind->start, NPS_MIN(len, (size_t)kind->len));
	same += nps_period_text__same_before(c->text, to, kind->start + kind->len,
					     NPS_MIN(len, (size_t)kind->len));
	return same >= ALIKE * kind->len ? step_add(f, NULL, from, to, true) : 0;
}

/* Whole iterations before the first boundary and after the last one. */
static int edge_add(struct begin_search *c, struct step_fill *f, size_t at, bool before)
{
	for (uint32_t i = 0; i < f->kinds.ntop; i++) {
		struct nps_period_kind *kind = nps_period_kinds__top(&f->kinds, i);
		size_t same =
			before ? nps_period_text__same_before(c->text, at, kind->start + kind->len, kind->len)
			       : nps_period_text__same_after(c->text, at, kind->start, kind->len);

		if (same < kind->len)
			continue;
		f->matched += kind->len;
		return before ? step_add(f, kind, at - kind->len, at, false)
			      : step_add(f, kind, at, at + kind->len, false);
	}
	return 0;
}

static int steps_fill(struct begin_search *c, struct step_fill *f)
{
	const uint32_t *at = c->bounds.data;
	size_t n = c->bounds.len;
	int err;

	nps_period_kinds__count(&f->kinds, at, n);
	if (!f->kinds.ntop)
		return 0;
	err = edge_add(c, f, at[0], true);
	for (size_t i = 0; !err && i + 1 < n; i++)
		err = segment_add(c, f, at[i], at[i + 1]);
	return err ? err : edge_add(c, f, at[n - 1], false);
}

int nps_period_cut__run(const struct nps_period_cut *plan, struct nps_periods *found)
{
	struct begin_search c = {
		.plan = plan, .text = plan->text, .low = -(long)UINT32_MAX, .high = UINT32_MAX
	};
	struct step_fill f = { .found = found };
	int err, kinds_err;

	found->steps.len = 0;
	found->kinds = 0;
	found->reason = NULL;
	nps_period_kinds__count(plan->kinds, plan->anchors, plan->count);
	c.main = nps_period_kinds__top(plan->kinds, 0);
	range_set(&c);
	nps_vec__init(&c.bounds, plan->in->dirfd, sizeof(uint32_t));
	c.scores = calloc(c.high - c.low, sizeof(*c.scores));
	if (!c.scores)
		return -ENOMEM;
	samples_choose(&c);
	shift_choose(&c);
	err = bounds_fill(&c);
	free(c.scores);
	kinds_err = nps_period_kinds__init(&f.kinds, plan->in->dirfd, c.text, c.bounds.len + 1);
	err = err ? err : kinds_err;
	err = err || !c.bounds.len ? err : steps_fill(&c, &f);
	err = err ? err : nps_period_judge(plan->in, c.text, found, f.matched);
	nps_period_kinds__free(&f.kinds);
	nps_vec__free(&c.bounds);
	return err;
}
