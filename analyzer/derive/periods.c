/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each symbol and each short row of symbols that recurs is an anchor, which cuts the sequence into segments.
 * Of anchors about as frequent the one is kept whose segments repeat best: a level of repetition, such as
 * layers, micro-batches, iterations. The outermost level wins, unless it only collects iterations, as
 * one does that begins with every tenth line of a log.
 */
#include "derive/periods.h"

#include "base/map.h"
#include "base/util.h"
#include "derive/period_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SHORTEST 4 /* launches of a segment, on average */
#define OCTAVE 8 /* levels while anchors double */
#define LEVELS (28 * OCTAVE)
#define COVERED 0.5 /* share of launches in equal segments, at least */
#define WORSE 0.15 /* share of launches that a level may cover less than the best one */
#define TRIES 8 /* levels whose segments are looked at closely */
#define INFORMATION 0.08 /* bits that name the kinds, per bit of the launches themselves */
#define INNER_MOST 1024 /* inner segments of an outer one that are looked at */
#define INNER_FEW 16 /* micro-batches of an iteration; more are layers, or iterations */
#define INNER_ADDED 8 /* times as many launches, at most, are an evaluation after an iteration */
#define INNER_LONG 32 /* launches that can be an iteration of their own */

static const uint8_t grams[] = { 1, 2, 4 }; /* symbols of an anchor */

struct repeat_level {
	struct nps_vec anchors; /* uint32_t: launches, ascending */
	uint64_t covered; /* launches in segments of repeated kinds; later also in similar ones */
	struct nps_period_kind main;
	uint32_t instance; /* a segment of the main kind, if possible before another one */
};

struct period_search {
	const struct nps_period_input *in;
	struct nps_period_text text;
	struct nps_period_kinds kinds;
	struct nps_vec keys; /* struct nps_key, twice as many as launches */
	struct nps_vec bounds; /* uint32_t */
	struct nps_vec updates; /* uint32_t: launches before that update parameters */
	struct repeat_level levels[LEVELS];
	double entropy; /* bits of a launch */
};

static bool level_worth(const struct period_search *s)
{
	const struct nps_period_kinds *k = &s->kinds;

	return k->covered >= COVERED * s->in->len && k->distinct * NPS_KIND_MIN <= k->covered &&
	       k->bits <= INFORMATION * s->entropy * k->covered;
}

/* Measures the COUNT anchors of KEYS, and keeps them if no others of their level are better. */
static int anchors_try(struct period_search *s, const struct nps_key *keys, size_t count)
{
	uint32_t *bounds = s->bounds.data;
	struct repeat_level *level;
	int err;

	if (count < NPS_PERIODS_MIN || count > s->in->len / SHORTEST ||
	    keys[count - 1].row - keys[0].row < COVERED * s->in->len)
		return 0;
	for (size_t i = 0; i < count; i++)
		bounds[i] = keys[i].row;
	nps_period_kinds__count(&s->kinds, bounds, count);
	level = &s->levels[NPS_MIN((size_t)(log2(count) * OCTAVE), (size_t)LEVELS - 1)];
	if (!level_worth(s) || s->kinds.covered <= level->covered)
		return 0;
	err = nps_vec__resize(&level->anchors, count);
	if (err)
		return err;
	for (size_t i = 0; i < count; i++)
		NPS_AT(&level->anchors, uint32_t, i) = bounds[i];
	level->covered = s->kinds.covered;
	return 0;
}

/* Tries each row of GRAM symbols as an anchor. */
static int grams_try(struct period_search *s, unsigned int gram)
{
	size_t n = s->in->len >= gram ? s->in->len - gram + 1 : 0, first = 0;
	struct nps_key *keys = s->keys.data;
	int err = 0;

	for (size_t i = 0; i < n; i++)
		keys[i] = (struct nps_key){
			.key = gram == 1 ? s->in->symbols[i]
					 : nps_period_text__hash(&s->text, i, i + gram) & UINT32_MAX,
			.row = i,
		};
	nps_sort_keys(keys, keys + n, n);
	for (size_t i = 1; !err && i <= n; i++) {
		if (i < n && keys[i].key == keys[first].key)
			continue;
		if (gram == 1)
			s->entropy += (double)(i - first) / n * log2((double)n / (i - first));
		first = i;
	}
	first = 0;
	for (size_t i = 1; !err && i <= n; i++) {
		if (i < n && keys[i].key == keys[first].key)
			continue;
		err = anchors_try(s, keys + first, i - first);
		first = i;
	}
	return err;
}

/* Counts what similar segments cover, too, and remembers the kind that most launches are in. */
static void level_measure(struct period_search *s, struct repeat_level *level)
{
	const uint32_t *at = level->anchors.data;
	size_t count = level->anchors.len, same;
	const struct nps_period_kind *kind;
	uint64_t covered;

	nps_period_kinds__count(&s->kinds, at, count);
	covered = s->kinds.covered;
	level->main = *nps_period_kinds__top(&s->kinds, 0);
	level->instance = level->main.segment;
	for (size_t i = 0; i + 1 < count; i++) {
		kind = nps_period_kinds__find(&s->kinds, at[i], at[i + 1]);
		if (!kind && nps_period_kinds__similar(&s->kinds, at[i], at[i + 1], &same))
			covered += same;
	}
	for (size_t i = 0; i + 2 < count; i++) {
		kind = nps_period_kinds__find(&s->kinds, at[i], at[i + 1]);
		if (!kind || kind->hash != level->main.hash ||
		    nps_period_kinds__find(&s->kinds, at[i + 1], at[i + 2]) != kind)
			continue;
		level->instance = i;
		break;
	}
	covered += nps_period_text__same_before(&s->text, at[0], level->main.start + level->main.len,
						level->main.len);
	covered += nps_period_text__same_after(&s->text, at[count - 1], level->main.start, level->main.len);
	level->covered = covered;
}

/* --- what an outer level consists of ------------------------------------------------------------------- */

struct inner_kind {
	uint64_t hash;
	uint32_t start, len, count;
};

/* The first of the COUNT positions that is not before AT. */
static size_t position_find(const uint32_t *positions, size_t count, uint32_t at)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (positions[mid] < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Kinds of the inner segments, the first 3 of them. */
static unsigned int inner_kinds(const struct period_search *s, const uint32_t *at, size_t count,
				struct inner_kind kinds[3])
{
	unsigned int n = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t hash = nps_period_text__hash(&s->text, at[i], at[i + 1]);
		unsigned int k = 0;

		while (k < n && kinds[k].hash != hash)
			k++;
		if (k == 3)
			return n;
		if (k == n)
			kinds[n++] = (struct inner_kind){ hash, at[i], at[i + 1] - at[i], 0 };
		kinds[k].count++;
	}
	return n;
}

static bool has_updates(const struct period_search *s, size_t from, size_t to)
{
	const uint32_t *before = s->updates.data;

	return s->in->updates && before[to] != before[from];
}

/*
 * MANY repeats, and once in an outer segment there is ONE, which has ADDED launches more: a micro-batch and
 * the optimizer, a layer and what is around layers; or an iteration and a line of a log or an evaluation.
 */
static bool only_collects(const struct period_search *s, const struct inner_kind *many,
			  const struct inner_kind *one, size_t added)
{
	if (has_updates(s, many->start, many->start + many->len))
		return many->len >= INNER_LONG && added <= INNER_ADDED * (size_t)many->len;
	if (has_updates(s, one->start, one->start + one->len))
		return false;
	if (added * 20 <= many->len || (many->count >= 10 && added <= 4 && many->len >= INNER_LONG))
		return true;
	return many->count > INNER_FEW && many->len >= INNER_LONG;
}

/* Whether segments of OUTER are no iterations, but several of INNER. *CLOSING as nps_period_cut has it. */
static bool level_collects(const struct period_search *s, const struct repeat_level *outer,
			   const struct repeat_level *inner, uint32_t *closing)
{
	const uint32_t *out = outer->anchors.data, *in = inner->anchors.data;
	uint32_t from = out[outer->instance], to = out[outer->instance + 1];
	size_t first = position_find(in, inner->anchors.len, from);
	size_t count = position_find(in, inner->anchors.len, to) - first, before, after;
	struct inner_kind kinds[3], *many = &kinds[0], *one = &kinds[1];
	unsigned int n;

	if (count < 2 || count > INNER_MOST || first + count >= inner->anchors.len)
		return false;
	n = inner_kinds(s, in + first, count, kinds);
	if (n != 2)
		return n == 1;
	if (many->count < one->count) {
		many = &kinds[1];
		one = &kinds[0];
	}
	if (one->count > 1)
		return false;
	before = nps_period_text__same_after(&s->text, one->start, many->start, NPS_MIN(one->len, many->len));
	after = nps_period_text__same_before(&s->text, one->start + one->len, many->start + many->len,
					     NPS_MIN(one->len, many->len));
	if (one->len > many->len && before + after >= many->len) {
		if (count <= INNER_FEW && many->len >= INNER_LONG)
			*closing = one->start + one->len - after;
		return only_collects(s, many, one, one->len - many->len);
	}
	return many->count > 1 && one->len <= 2 * many->len && many->len <= 2 * one->len;
}

/* Measures the levels. The launches that a level has to cover not to be worse than the best one. */
static uint64_t levels_measure(struct period_search *s)
{
	uint64_t best = 0;

	for (size_t i = 0; i < LEVELS; i++) {
		if (!s->levels[i].covered)
			continue;
		level_measure(s, &s->levels[i]);
		best = NPS_MAX(best, s->levels[i].covered);
	}
	return best - NPS_MIN(best, (uint64_t)(WORSE * s->in->len));
}

/* Whether LEVEL only collects iterations of a level that covers LEAST launches. */
static bool level_collects_any(const struct period_search *s, size_t level, uint64_t least, uint32_t *closing)
{
	*closing = NPS_NONE;
	for (size_t i = level + 1; i < LEVELS; i++)
		if (s->levels[i].covered && s->levels[i].covered >= least &&
		    level_collects(s, &s->levels[level], &s->levels[i], closing))
			return true;
	return false;
}

/*
 * Steps of the outermost level that does not only collect iterations. If that may be no iterations, those of
 * levels inside it are neither; of levels outside it, which cover less, they are tried before.
 */
static int levels_cut(struct period_search *s, struct nps_periods *found)
{
	uint64_t least = levels_measure(s);
	unsigned int tries = 0;

	found->reason = "the launches do not repeat";
	for (size_t i = 0; i < LEVELS && tries < TRIES; i++) {
		const struct repeat_level *level = &s->levels[i];
		struct nps_period_cut cut = { .in = s->in,
					      .text = &s->text,
					      .kinds = &s->kinds,
					      .anchors = level->anchors.data,
					      .count = level->anchors.len };
		int err;

		if (!level->covered || level_collects_any(s, i, least, &cut.closing))
			continue;
		tries++;
		err = nps_period_cut__run(&cut, found);
		if (err || !found->reason || level->covered >= least)
			return err;
	}
	return 0;
}

static int count_updates(struct period_search *s)
{
	int err = s->in->updates ? nps_vec__resize(&s->updates, s->in->len + 1) : 0;
	uint32_t *before = s->updates.data;

	for (size_t i = 0; !err && s->in->updates && i < s->in->len; i++)
		before[i + 1] = before[i] + !!s->in->updates[s->in->symbols[i]];
	return err;
}

static int search_run(struct period_search *s, struct nps_periods *found)
{
	int text_err = nps_period_text__init(&s->text, s->in->dirfd, s->in->symbols, s->in->len);
	int err = nps_period_kinds__init(&s->kinds, s->in->dirfd, &s->text, s->in->len / SHORTEST + 1);

	err = text_err ? text_err : err;
	err = err ? err : nps_vec__resize(&s->keys, 2 * s->in->len);
	err = err ? err : nps_vec__resize(&s->bounds, s->in->len / SHORTEST + 1);
	err = err ? err : count_updates(s);
	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(grams); i++)
		err = grams_try(s, grams[i]);
	nps_vec__free(&s->keys);
	if (err)
		return err;
	return levels_cut(s, found);
}

int nps_periods__find(const struct nps_period_input *input, struct nps_periods *found)
{
	struct period_search *s;
	int err;

	*found = (struct nps_periods){ 0 };
	nps_vec__init(&found->steps, input->dirfd, sizeof(struct nps_period_step));
	if (input->len < (size_t)NPS_PERIODS_MIN * SHORTEST) {
		found->reason = "there are too few launches";
		return 0;
	}
	if (input->len >= UINT32_MAX / 2) {
		found->reason = "there are too many launches";
		return 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->in = input;
	nps_vec__init(&s->keys, input->dirfd, sizeof(struct nps_key));
	nps_vec__init(&s->bounds, input->dirfd, sizeof(uint32_t));
	nps_vec__init(&s->updates, input->dirfd, sizeof(uint32_t));
	for (size_t i = 0; i < LEVELS; i++)
		nps_vec__init(&s->levels[i].anchors, input->dirfd, sizeof(uint32_t));
	err = search_run(s, found);
	for (size_t i = 0; i < LEVELS; i++)
		nps_vec__free(&s->levels[i].anchors);
	nps_vec__free(&s->keys);
	nps_vec__free(&s->bounds);
	nps_vec__free(&s->updates);
	nps_period_kinds__free(&s->kinds);
	nps_period_text__free(&s->text);
	free(s);
	return err;
}

void nps_periods__free(struct nps_periods *found)
{
	nps_vec__free(&found->steps);
}
