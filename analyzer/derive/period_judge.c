/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether what repeats are iterations. Layers and micro-batches repeat, too, and in a short capture nothing
 * else does. Iterations update the parameters, if anything does; or the host pauses before them; or there is
 * nothing but them.
 */
#include "derive/period_search.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>

#define REPEATED 0.85 /* share of the launches from the first step to the last that repeat */
#define UPDATES 0.8 /* share of the updates that are in steps */
#define PAUSES 0.5 /* share of the longest pauses that are before steps, and of steps after one */
#define FINE 16 /* classes of pauses while they double */
#define CLASSES (64 * FINE)
#define INNER_FEW 16 /* micro-batches of an iteration */
#define ALONE 0.97 /* share of all launches that repeat, if nothing else is known of long steps */
#define LAYER_LONGEST 100 /* launches; what is shorter can be a layer */
#define RUN 3 /* equal segments in a row, on average, of a layer */

struct judged {
	const struct nps_period_input *in;
	const struct nps_period_text *text;
	const struct nps_period_step *steps;
	size_t count;
	uint64_t *launches; /* by kind */
	uint32_t main; /* kind with most launches */
	size_t main_len;
	bool begins_anywhere; /* neither pauses nor updates show where an iteration begins */
};

static bool updates_at(const struct judged *j, size_t i)
{
	return j->in->updates && j->in->updates[j->in->symbols[i]];
}

/* Whether steps update the parameters: most of them do, and most updates are in them. *ALL: the updates. */
static bool steps_update(const struct judged *j, uint64_t *all)
{
	size_t step = 0, updating = 0, inside = 0;
	bool updates = false;

	*all = 0;
	for (size_t i = 0; i < j->in->len; i++) {
		for (; step < j->count && j->steps[step].end <= i; step++)
			updates = false;
		if (!updates_at(j, i))
			continue;
		++*all;
		if (step == j->count || j->steps[step].first > i)
			continue;
		inside++;
		updating += !updates;
		updates = true;
	}
	return inside >= UPDATES * *all && 2 * updating >= j->count;
}

static size_t pause_class(uint64_t ns)
{
	unsigned int bits = ns ? 63 - __builtin_clzll(ns) : 0;
	uint64_t below = ns - (ns ? 1ULL << bits : 0);

	return bits * FINE + (bits >= 4 ? below >> (bits - 4) : below << (4 - bits));
}

/* Whether the longest pauses, as many as there are steps, are before steps. */
static bool pauses_before(const struct judged *j)
{
	uint64_t counts[CLASSES] = { 0 }, longer = 0, hits = 0;
	const uint64_t *times = j->in->times;
	size_t class = CLASSES;

	if (!times)
		return false;
	for (size_t i = 1; i < j->in->len; i++)
		counts[pause_class(nps_span(times[i - 1], times[i]))]++;
	while (class && longer < j->count - 1)
		longer += counts[--class];
	for (size_t i = 0; i < j->count; i++) {
		size_t first = j->steps[i].first;

		hits += first && pause_class(nps_span(times[first - 1], times[first])) >= class;
	}
	return hits >= PAUSES * longer && hits >= PAUSES * j->count;
}

/* What comes between steps that repeat exactly. */
struct interruptions {
	uint64_t majority; /* hash of what most of them are, if they are the same */
	size_t votes, all, equal;
	size_t first, last, shortest, longest; /* where equal ones begin, and how far apart */
};

static void interruption_count(struct interruptions *s, uint64_t hash, size_t at, bool vote)
{
	if (vote && !s->votes) {
		s->majority = hash;
		s->votes = 1;
	} else if (vote) {
		s->votes += hash == s->majority ? 1 : -1;
	}
	if (vote)
		return;
	s->all++;
	if (hash != s->majority)
		return;
	if (s->equal++) {
		s->shortest = NPS_MIN(s->shortest, at - s->last);
		s->longest = NPS_MAX(s->longest, at - s->last);
	} else {
		s->first = at;
		s->shortest = SIZE_MAX;
	}
	s->last = at;
}

/* Whether the same interruption comes at regular intervals: steps and it are parts of iterations. */
static bool same_interruptions(const struct judged *j, bool pauses)
{
	struct interruptions s = { 0 };

	for (int pass = 0; pass < 2; pass++) {
		size_t end = 0;

		for (size_t i = 0; i < j->count; i++) {
			const struct nps_period_step *step = &j->steps[i];

			if (step->irregular)
				continue;
			if (end && step->first > end && step->first - end > j->main_len / 20)
				interruption_count(&s, nps_period_text__hash(j->text, end, step->first), end,
						   !pass);
			end = step->end;
		}
	}
	if (pauses && s.equal == 2 && s.longest > INNER_FEW * j->main_len)
		return false; /* two evaluations */
	return s.equal > 1 && s.equal * 2 >= s.all && s.longest - s.shortest <= s.longest / 20 &&
	       s.first <= s.longest + j->main_len && j->in->len - s.last <= s.longest + j->main_len;
}

/* Whether two kinds or more come in runs each, as layers do forward and backward. */
static bool comes_in_runs(const struct judged *j, uint32_t kinds)
{
	uint32_t *steps = calloc(2 * (size_t)kinds + 2, sizeof(*steps)), *runs;
	unsigned int found = 0;

	if (!steps)
		return true;
	runs = steps + kinds + 1;
	for (size_t i = 0; i < j->count; i++) {
		steps[j->steps[i].kind]++;
		runs[j->steps[i].kind] += !i || j->steps[i].kind != j->steps[i - 1].kind;
	}
	for (uint32_t kind = 1; kind <= kinds; kind++)
		found += runs[kind] && steps[kind] >= RUN * runs[kind];
	free(steps);
	return found > 1;
}

/* Whether steps follow each other without anything else, but what may be parts of steps at both ends. */
static bool nothing_else(const struct judged *j)
{
	for (size_t i = 0; i < j->count; i++)
		if (j->steps[i].irregular || (i + 1 < j->count && j->steps[i].end != j->steps[i + 1].first))
			return false;
	return j->steps[0].first <= j->main_len && j->in->len - j->steps[j->count - 1].end <= j->main_len;
}

static const char *steps_refuse(struct judged *j, uint32_t kinds, uint64_t matched)
{
	size_t launches = j->steps[j->count - 1].end - j->steps[0].first;
	bool update, pauses;
	uint64_t updates;

	if (matched < NPS_PERIODS_CONFIDENCE * j->in->len || matched < REPEATED * launches)
		return "too much of the launches does not repeat";
	update = steps_update(j, &updates);
	if (updates)
		return update ? NULL : "what repeats does not update the parameters, which others do";
	pauses = pauses_before(j);
	if (same_interruptions(j, pauses))
		return "what repeats are parts of iterations of which there are too few";
	if (pauses)
		return NULL;
	if (comes_in_runs(j, kinds) ||
	    (!nothing_else(j) && (matched < ALONE * j->in->len || j->main_len < LAYER_LONGEST)))
		return "what repeats may be parts of iterations";
	j->begins_anywhere = true;
	return NULL;
}

int nps_period_judge(const struct nps_period_input *in, const struct nps_period_text *text,
		     struct nps_periods *found, uint64_t matched)
{
	struct judged j = { .in = in, .text = text, .steps = found->steps.data, .count = found->steps.len };
	size_t repeated = 0;

	found->confidence = (double)matched / in->len;
	j.launches = calloc(found->kinds + 1, sizeof(*j.launches));
	if (!j.launches)
		return -ENOMEM;
	for (size_t i = 0; i < j.count; i++) {
		repeated += j.steps[i].kind != 0;
		j.launches[j.steps[i].kind] += j.steps[i].end - j.steps[i].first;
	}
	for (uint32_t kind = 1; kind <= found->kinds; kind++)
		if (!j.main || j.launches[kind] > j.launches[j.main])
			j.main = kind;
	for (size_t i = 0; i < j.count && !j.main_len; i++)
		if (j.steps[i].kind == j.main)
			j.main_len = j.steps[i].end - j.steps[i].first;
	found->reason = repeated < NPS_PERIODS_MIN ? "there are too few repetitions"
						   : steps_refuse(&j, found->kinds, matched);
	free(j.launches);
	if (j.begins_anywhere)
		found->confidence /= 2;
	if (!found->reason)
		return 0;
	found->steps.len = 0;
	found->kinds = 0;
	return 0;
}
