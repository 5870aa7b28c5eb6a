/* SPDX-License-Identifier: BSD-2-Clause */
#include "findings/ranks.h"

#include "findings/align.h"
#include "findings/findings.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORST 20 /* collectives that are listed */
#define STEPS 1000 /* steps that are listed */
#define ENOUGH 5 /* common collectives from which clocks are compared */
#define UNEVEN 1.1 /* times the median */
#define WORTH 0.01 /* share of the capture */

enum value { COMPUTING, COMMUNICATION, ALONE, FREE, PREPARING, TOTAL, VALUES };

struct step {
	uint64_t key;
	uint32_t name;
	double values[VALUES];
};

struct rank {
	uint32_t name, label, number, pid; /* name, label: texts */
	uint32_t host; /* text; empty: not known */
	bool numbered;
	uint64_t span;
	/* struct nps_rank_op, struct step; by key once compared, but for the first rank's steps */
	struct nps_vec ops, steps;
	double sums[VALUES];
	size_t nops, nsteps; /* next rows of a walk */
	int64_t offset; /* of its clock, ns */
	uint64_t common, last, late, wait; /* collectives with others; ns */
	uint64_t unknown; /* collectives whose counterparts on other ranks are not known */
};

void nps_ranks__init(struct nps_ranks *r, int tmpfd)
{
	r->tmpfd = tmpfd;
	nps_strings__init(&r->strings, tmpfd);
	nps_vec__init(&r->list, tmpfd, sizeof(struct rank));
}

static struct rank *rank_at(const struct nps_ranks *r, size_t i)
{
	return &NPS_AT(&r->list, struct rank, i);
}

void nps_ranks__free(struct nps_ranks *r)
{
	for (size_t i = 0; i < r->list.len; i++) {
		nps_vec__free(&rank_at(r, i)->ops);
		nps_vec__free(&rank_at(r, i)->steps);
	}
	nps_vec__free(&r->list);
	nps_strings__free(&r->strings);
}

/* --- what is kept of a rank ----------------------------------------------------------------------- */

static uint64_t hash_text(const char *text)
{
	return nps_hash_bytes(text, strlen(text));
}

/* Lanes of traces are numbered by each rank for itself: they name no group. */
static uint64_t hash_group(const char *group)
{
	unsigned int number;
	char c;

	if (!*group || !strcmp(group, "N/A") || sscanf(group, "Group %u%c", &number, &c) == 1)
		return 0;
	return hash_text(group);
}

/* *BEFORE: how many of this kind came before; counts one more. */
static int seen_count(struct nps_map *seen, uint64_t which, uint32_t *before)
{
	*before = nps_map__get(seen, which);
	*before = *before == NPS_NONE ? 0 : *before;
	return nps_map__put(seen, which, *before + 1);
}

static int rank_add_op(struct nps_ranks *r, struct rank *rank, const struct nps_model *m, size_t i,
		       struct nps_map *seen)
{
	const struct nps_comm_op_table *t = &m->comm_op;
	const char *name = nps_model__text(m, t->name[i]), *numbers = strstr(name, "__");
	uint64_t group = hash_group(nps_model__text(m, t->group[i]));
	uint64_t which = nps_hash2(hash_text(name), group);
	uint32_t before, ordinal;
	struct nps_rank_op *op;

	if (seen_count(seen, which, &before) || seen_count(seen, ~group, &ordinal))
		return -ENOMEM;
	if (t->tasks[i] && !t->measured[i])
		return 0;
	op = nps_vec__push(&rank->ops);
	if (!op)
		return -ENOMEM;
	op->key = nps_hash2(which, before);
	op->start = t->start[i];
	op->end = NPS_MAX(t->start[i], t->end[i]);
	op->group = group;
	op->kind = numbers ? nps_hash_bytes(name, numbers - name) : hash_text(name);
	op->ordinal = ordinal;
	op->name = nps_strings__addz(&r->strings, name);
	return op->name == NPS_NONE ? -ENOMEM : 0;
}

static int add_ops(struct nps_ranks *r, struct rank *rank, const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	struct nps_map seen = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < m->comm_op.t.len; i++) {
		nps_pace__step(&pace);
		err = rank_add_op(r, rank, m, i, &seen);
	}
	nps_map__free(&seen);
	return err;
}

static int add_steps(struct nps_ranks *r, struct rank *rank, const struct nps_model *m)
{
	const struct nps_step_trace_table *t = &m->step_trace;

	for (size_t i = 0; i < t->t.len; i++) {
		const char *name = nps_model__text(m, t->step[i]);
		struct step *step = nps_vec__push(&rank->steps);

		if (!step)
			return -ENOMEM;
		step->key = hash_text(name);
		step->name = nps_strings__addz(&r->strings, name);
		if (step->name == NPS_NONE)
			return -ENOMEM;
		step->values[COMPUTING] = t->computing[i];
		step->values[COMMUNICATION] = t->communication[i];
		step->values[ALONE] = t->not_overlapped[i];
		step->values[FREE] = t->free[i];
		step->values[PREPARING] = t->preparing[i];
		step->values[TOTAL] = t->computing[i] + t->not_overlapped[i] + t->free[i] + t->preparing[i];
		for (int value = 0; value < VALUES; value++)
			rank->sums[value] += step->values[value];
	}
	return 0;
}

static uint32_t add_label(struct nps_ranks *r, const struct rank *rank)
{
	const char *name = nps_strings__get(&r->strings, rank->name);
	int len = (int)nps_utf8_fit(name, 200);

	if (rank->numbered)
		return nps_strings__addf(&r->strings, "rank %u", rank->number);
	if (rank->pid) /* all processes of a session have one path */
		return nps_strings__addf(&r->strings, "%.*s process %u", len, name, rank->pid);
	return nps_strings__addf(&r->strings, "%.*s", len, name);
}

int nps_ranks__add(struct nps_ranks *r, const struct nps_model *m, const char *name)
{
	struct rank *rank = nps_vec__push(&r->list);
	int err;

	if (!rank)
		return -ENOMEM;
	nps_vec__init(&rank->ops, r->tmpfd, sizeof(struct nps_rank_op));
	nps_vec__init(&rank->steps, r->tmpfd, sizeof(struct step));
	rank->name = nps_strings__addz(&r->strings, name);
	rank->numbered = m->has_rank;
	rank->number = m->rank;
	rank->pid = m->pid;
	rank->host = nps_strings__addz(&r->strings, nps_model__text(m, m->host_uid));
	rank->label = add_label(r, rank);
	rank->span = nps_span(m->start, m->end);
	err = rank->name == NPS_NONE || rank->host == NPS_NONE || rank->label == NPS_NONE
		      ? -ENOMEM
		      : add_ops(r, rank, m);
	err = err ? err : add_steps(r, rank, m);
	if (err) { /* half a rank is not compared */
		nps_vec__free(&rank->ops);
		nps_vec__free(&rank->steps);
		r->list.len--;
	}
	return err;
}

/* --- collectives ---------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b; /* key is the first member of both */

	return (x > y) - (x < y);
}

static int rank_compare_ordinal(const void *a, const void *b)
{
	const struct nps_rank_op *x = a, *y = b;

	if (x->group != y->group)
		return x->group > y->group ? 1 : -1;
	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static const struct nps_rank_op *rank_find_op(const struct rank *rank, uint64_t key)
{
	return rank->nops < rank->ops.len && NPS_AT(&rank->ops, struct nps_rank_op, rank->nops).key == key
		       ? &NPS_AT(&rank->ops, struct nps_rank_op, rank->nops)
		       : NULL;
}

/* Steps all ranks on to the next collective that at least two of them have; its key, 0 at the end. */
static uint64_t next_common(struct nps_ranks *r, uint64_t done)
{
	for (;;) {
		uint64_t key = UINT64_MAX;
		size_t with = 0;

		for (size_t i = 0; i < r->list.len; i++) {
			struct rank *rank = rank_at(r, i);

			if (rank_find_op(rank, done))
				rank->nops++;
			if (rank->nops < rank->ops.len)
				key = NPS_MIN(key, NPS_AT(&rank->ops, struct nps_rank_op, rank->nops).key);
		}
		if (key == UINT64_MAX)
			return 0;
		for (size_t i = 0; i < r->list.len; i++)
			with += rank_find_op(rank_at(r, i), key) != NULL;
		if (with > 1)
			return key;
		done = key;
	}
}

static void rewind_ops(struct nps_ranks *r)
{
	for (size_t i = 0; i < r->list.len; i++)
		rank_at(r, i)->nops = 0;
}

static void sort_ops(struct nps_ranks *r, int (*order)(const void *a, const void *b))
{
	for (size_t i = 0; i < r->list.len; i++) {
		struct nps_vec *ops = &rank_at(r, i)->ops;

		if (ops->len)
			qsort(ops->data, ops->len, ops->elem, order);
	}
}

static bool same_host(const struct nps_ranks *r, const struct rank *a, const struct rank *b)
{
	return a->host == b->host && *nps_strings__get(&r->strings, a->host);
}

/* The collectives of GROUP; those of a rank are sorted by group. */
static struct nps_rank_op *rank_group(const struct rank *rank, uint64_t group, size_t *n)
{
	struct nps_rank_op *ops = rank->ops.data;
	size_t begin = 0, end = rank->ops.len;

	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;

		if (ops[middle].group < group)
			begin = middle + 1;
		else
			end = middle;
	}
	while (end < rank->ops.len && ops[end].group == group)
		end++;
	*n = end - begin;
	return *n ? ops + begin : NULL;
}

/* Compares a rank's collectives of a group with those of the first rank on its host that has any. */
static int align_group(struct nps_ranks *r, size_t i, uint64_t group)
{
	struct rank *rank = rank_at(r, i);
	size_t ny, nx = 0;
	struct nps_rank_op *y = rank_group(rank, group, &ny), *x = NULL;
	bool unknown;
	int err;

	for (size_t k = 0; k < i && !x; k++)
		if (same_host(r, rank_at(r, k), rank))
			x = rank_group(rank_at(r, k), group, &nx);
	if (!x || !group)
		return 0;
	err = nps_align__group(x, nx, y, ny, &unknown);
	if (!err && unknown)
		rank->unknown += ny;
	return err;
}

static int align_ranks(struct nps_ranks *r)
{
	int err = 0;

	sort_ops(r, rank_compare_ordinal);
	for (size_t i = 1; i < r->list.len; i++) {
		const struct nps_vec *ops = &rank_at(r, i)->ops;

		for (size_t at = 0, n; !err && at < ops->len; at += n) {
			uint64_t group = NPS_AT(ops, struct nps_rank_op, at).group;

			rank_group(rank_at(r, i), group, &n);
			err = align_group(r, i, group);
		}
	}
	return err;
}

/* Marks the arrivals of this rank as unknown. */
static void forget_arrivals(struct rank *rank)
{
	for (size_t i = 0; i < rank->ops.len; i++)
		NPS_AT(&rank->ops, struct nps_rank_op, i).key = NPS_ALIGN_NOBODY;
	rank->unknown = rank->ops.len;
}

/* APART: by how much the N common collectives end later than the first rank's, by size. */
static void judge_clock(struct rank *rank, const int64_t *apart, size_t n)
{
	int64_t middle = apart[n / 2], low = apart[n / 4], high = apart[3 * n / 4], spread;

	if (n < ENOUGH || (middle <= NPS_ALIGN_CLOSE && middle >= -NPS_ALIGN_CLOSE))
		return;
	/* A clock has one offset: if the distances vary, these are not the same collectives. */
	if (__builtin_sub_overflow(high, low, &spread) || spread > NPS_ALIGN_CLOSE)
		forget_arrivals(rank);
	else
		rank->offset = middle;
}

/*
 * A collective ends on all ranks at nearly the same time. Ends that differ from the first rank's by much
 * more, always in the same direction, come from clocks of different hosts.
 */
static int compare_clocks(struct nps_ranks *r)
{
	for (size_t i = 1; i < r->list.len; i++) {
		const struct rank *first = rank_at(r, 0);
		struct rank *rank = rank_at(r, i);
		size_t room = NPS_MIN(first->ops.len, rank->ops.len), n = 0, a = 0, b = 0;
		int64_t *apart;

		if (same_host(r, first, rank))
			continue;
		apart = calloc(room + 1, sizeof(*apart));
		if (!apart)
			return -ENOMEM;
		while (a < first->ops.len && b < rank->ops.len) {
			const struct nps_rank_op *x = &NPS_AT(&first->ops, struct nps_rank_op, a);
			const struct nps_rank_op *y = &NPS_AT(&rank->ops, struct nps_rank_op, b);

			if (x->key == y->key)
				apart[n++] = (int64_t)(y->end - x->end);
			a += x->key <= y->key;
			b += y->key <= x->key;
		}
		qsort(apart, n, sizeof(*apart), nps_by_i64);
		judge_clock(rank, apart, n);
		free(apart);
	}
	return 0;
}

/* A collective whose ranks arrive far apart. */
struct skewed {
	uint64_t skew, start;
	uint32_t name, first, last; /* FIRST, LAST: indexes of ranks */
};

struct arrivals {
	uint64_t common, total;
	struct nps_histogram skews;
	struct skewed worst[WORST];
	size_t nworst;
};

static void keep_worst(struct arrivals *a, const struct skewed *new)
{
	size_t at;

	if (a->nworst == WORST && a->worst[WORST - 1].skew >= new->skew)
		return;
	at = a->nworst < WORST ? a->nworst++ : WORST - 1;
	for (; at && a->worst[at - 1].skew < new->skew; at--)
		a->worst[at] = a->worst[at - 1];
	a->worst[at] = *new;
}

static void note_collective(struct nps_ranks *r, struct arrivals *a, uint64_t key)
{
	struct skewed s = { .first = NPS_NONE };
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < r->list.len; i++) {
		const struct nps_rank_op *op = rank_find_op(rank_at(r, i), key);
		uint64_t start = op ? op->start - rank_at(r, i)->offset : 0;

		if (!op)
			continue;
		if (s.first == NPS_NONE || start < first) {
			first = start;
			s.first = i;
			s.start = op->start;
			s.name = op->name;
		}
		if (start >= last) {
			last = start;
			s.last = i;
		}
	}
	for (size_t i = 0; i < r->list.len; i++) {
		const struct nps_rank_op *op = rank_find_op(rank_at(r, i), key);
		struct rank *rank = rank_at(r, i);

		if (!op)
			continue;
		rank->common++;
		rank->late += op->start - rank->offset - first;
		rank->wait += last - (op->start - rank->offset);
	}
	s.skew = last - first;
	rank_at(r, s.last)->last += s.skew > 0;
	nps_histogram__add(&a->skews, s.skew);
	keep_worst(a, &s);
}

/* --- as answers ----------------------------------------------------------------------------------- */

static const char *rank_label(const struct nps_ranks *r, size_t i)
{
	return nps_strings__get(&r->strings, rank_at(r, i)->label);
}

#define SUM(value) (r->steps.len ? r->sums[value] : NPS_NAN)
/* When it arrived, if that is known of any collective. */
#define ARRIVED(ns) (r->common || !r->unknown ? (ns) / 1e3 : NPS_NAN)

#define RANK_COLUMNS(C)                                                                                      \
	C("rank", TEXT, "rank", nps_strings__get(&m->strings, r->label))                                     \
	C("path", TEXT, NULL, nps_strings__get(&m->strings, r->name))                                        \
	C("steps", COUNT, "steps", r->steps.len)                                                             \
	C("computing_us", US, "computing", SUM(COMPUTING))                                                   \
	C("communication_us", US, "communication", SUM(COMMUNICATION))                                       \
	C("communication_not_overlapped_us", US, NULL, SUM(ALONE))                                           \
	C("free_us", US, "free", SUM(FREE))                                                                  \
	C("preparing_us", US, NULL, SUM(PREPARING))                                                          \
	C("total_us", US, "total", SUM(TOTAL), .print = 3)                                                   \
	C("collectives", COUNT, NULL, r->ops.len)                                                            \
	C("common_collectives", COUNT, "collectives", r->common)                                             \
	C("last_in", COUNT, "last in", r->last)                                                              \
	C("collectives_not_matched", COUNT, NULL, r->unknown)                                                \
	C("late_us", US, "late by", ARRIVED(r->late))                                                        \
	C("wait_us", US, "waits", ARRIVED(r->wait))                                                          \
	C("clock_offset_us", NS, "clock ahead", r->offset)

NPS_FIND_TABLE(ranks, "rows", "ranks, sums of all steps, us", struct nps_ranks, struct rank, RANK_COLUMNS)

static uint64_t not_matched(const struct nps_ranks *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->list.len; i++)
		n += rank_at(r, i)->unknown;
	return n;
}

#define ARRIVAL_COLUMNS(C)                                                                                   \
	C("common_collectives", COUNT, NULL, r->count)                                                       \
	C("collectives_not_matched", COUNT, NULL, not_matched(m))                                            \
	C("total_skew_us", NS, NULL, r->total)                                                               \
	C("mean_skew_us", US, NULL, nps_histogram__mean_us(r))                                               \
	C("p50_skew_us", US, NULL, nps_histogram__quantile_us(r, 0.5))                                       \
	C("p99_skew_us", US, NULL, nps_histogram__quantile_us(r, 0.99))                                      \
	C("max_skew_us", US, NULL, nps_histogram__quantile_us(r, 1))

NPS_FIND_TABLE(arrivals, NULL, NULL, struct nps_ranks, struct nps_histogram, ARRIVAL_COLUMNS)

#define SKEWED_COLUMNS(C)                                                                                    \
	C("name", TEXT, "name", nps_strings__get(&m->strings, r->name))                                      \
	C("skew_us", NS, "distance", r->skew)                                                                \
	C("first", TEXT, "first", rank_label(m, r->first))                                                   \
	C("last", TEXT, "last", rank_label(m, r->last))                                                      \
	C("start_us", TIME, NULL, r->start)

NPS_FIND_TABLE(worst, "arrivals.worst", "collectives with the largest distance between arrivals, us",
	       struct nps_ranks, struct skewed, SKEWED_COLUMNS)

static const struct step *rank_find_step(const struct rank *rank, uint64_t key)
{
	if (!rank->steps.len)
		return NULL; /* no steps have no address */
	return bsearch(&key, rank->steps.data, rank->steps.len, sizeof(struct step), by_key);
}

/* A step of the first rank that others have, too: who needed longest for what. */
struct rank_step_row {
	const char *name;
	size_t ranks;
	struct extent {
		double least, most;
		size_t by; /* the rank that needed most */
	} of[VALUES];
};

#define EXTENT(C, key, title, value)                                                                         \
	C("least_" key, US, title " from", r->of[value].least)                                               \
	C("most_" key, US, "to", r->of[value].most)                                                          \
	C("most_" key "_by", TEXT, "by", rank_label(m, r->of[value].by))

#define STEP_COLUMNS(C)                                                                                      \
	C("step", TEXT, "step", r->name)                                                                     \
	EXTENT(C, "total_us", "total", TOTAL)                                                                \
	EXTENT(C, "computing_us", "computing", COMPUTING)                                                    \
	EXTENT(C, "communication_us", "communication", COMMUNICATION)                                        \
	C("least_free_us", US, NULL, r->of[FREE].least)                                                      \
	C("most_free_us", US, NULL, r->of[FREE].most)                                                        \
	C("most_free_us_by", TEXT, NULL, rank_label(m, r->of[FREE].by))                                      \
	C("ranks", COUNT, "ranks", r->ranks, .print = 2)

NPS_FIND_TABLE(steps, "steps", "steps of all ranks, us", struct nps_ranks, struct rank_step_row, STEP_COLUMNS)

static void compare_step(const struct nps_ranks *r, const struct step *step, struct rank_step_row *row)
{
	for (int value = 0; value < VALUES; value++) {
		struct extent *extent = &row->of[value];

		row->ranks = 0;
		for (size_t k = 0; k < r->list.len; k++) {
			const struct step *other = k ? rank_find_step(rank_at(r, k), step->key) : step;
			double v = other ? other->values[value] : 0;

			if (!other)
				continue;
			if (!row->ranks || v > extent->most) {
				extent->most = v;
				extent->by = k;
			}
			extent->least = !row->ranks || v < extent->least ? v : extent->least;
			row->ranks++;
		}
	}
}

static void add_steps_section(const struct nps_ranks *r, cJSON *document)
{
	cJSON *list = nps_find__rows(document, &steps, r, NULL, 0, 0);
	const struct rank *first = rank_at(r, 0);

	for (size_t i = 0; i < NPS_MIN(first->steps.len, (size_t)STEPS); i++) {
		const struct step *step = &NPS_AT(&first->steps, struct step, i);
		struct rank_step_row row = { .name = nps_strings__get(&r->strings, step->name) };

		compare_step(r, step, &row);
		if (row.ranks > 1)
			cJSON_AddItemToArray(list, nps_find__object(&steps, r, &row));
	}
}

/* The median; of two the smaller. */
static double middle_of(const struct nps_ranks *r, enum value value)
{
	for (size_t i = 0; i < r->list.len; i++) {
		double v = rank_at(r, i)->sums[value];
		size_t before = 0;

		for (size_t k = 0; k < r->list.len; k++) {
			double other = rank_at(r, k)->sums[value];

			before += other < v || (other == v && k < i);
		}
		if (before == (r->list.len - 1) / 2)
			return v;
	}
	return 0;
}

/* The rank that comes last: others wait for it, and it waits least. */
static int slow_rank(const struct nps_ranks *r, struct nps_find *find)
{
	uint64_t all = 0;
	size_t slow = 0;
	const struct rank *s;
	const char *name;
	cJSON *numbers;

	for (size_t i = 0; i < r->list.len; i++) {
		all = nps_add_sat(all, rank_at(r, i)->late);
		if (rank_at(r, i)->late > rank_at(r, slow)->late)
			slow = i;
	}
	s = rank_at(r, slow);
	if (s->late < all / 2 || !s->span || s->late < WORTH * s->span)
		return 0;
	name = rank_label(r, slow);
	numbers = cJSON_CreateObject();
	cJSON_AddStringToObject(numbers, "rank", name);
	cJSON_AddNumberToObject(numbers, "common_collectives", (double)s->common);
	cJSON_AddNumberToObject(numbers, "last_in", (double)s->last);
	nps_find__number(numbers, "late_us", s->late / 1e3);
	nps_find__number(numbers, "wait_us", s->wait / 1e3);
	return nps_find__add(
		find, "slow_rank", (double)s->late / s->span, numbers, NULL,
		"look at this rank's own steps: more computing means more work or a slower device, more "
		"free time a slower host",
		"%s is the last in %llu of %llu collectives that it shares with others; they wait "
		"%.1f us for it, and it waits %.1f us",
		name, (unsigned long long)s->last, (unsigned long long)s->common, s->late / 1e3,
		s->wait / 1e3);
}

static int uneven(const struct nps_ranks *r, struct nps_find *find, enum value value, const char *what)
{
	double middle = middle_of(r, value), most, all;
	size_t slow = 0;
	const char *name;
	cJSON *numbers;

	for (size_t i = 1; i < r->list.len; i++)
		if (rank_at(r, i)->sums[value] > rank_at(r, slow)->sums[value])
			slow = i;
	most = rank_at(r, slow)->sums[value];
	all = rank_at(r, slow)->sums[TOTAL];
	if (middle <= 0 || most < UNEVEN * middle || all <= 0 || most - middle < WORTH * all)
		return 0;
	name = rank_label(r, slow);
	numbers = cJSON_CreateObject();
	cJSON_AddStringToObject(numbers, "rank", name);
	nps_find__number(numbers, "most_us", most);
	nps_find__number(numbers, "median_us", middle);
	return nps_find__add(find, value == COMPUTING ? "uneven_computing" : "uneven_free",
			     (most - middle) / all, numbers, NULL,
			     value == COMPUTING
				     ? "compare the operators of this rank with another's: the same work "
				       "that takes longer is the device, more work is the input"
				     : "compare the idle times of this rank with another's",
			     "%s spends %.1f us %s, the median of all ranks is %.1f us", name, most, what,
			     middle);
}

static int ranks_report(const struct nps_ranks *r, const struct arrivals *a, cJSON *document)
{
	struct nps_find find = { .document = document };
	int err;

	nps_find__rows(document, &ranks, r, r->list.data, r->list.len, r->list.elem);
	nps_find__members(cJSON_AddObjectToObject(document, "arrivals"), &arrivals, r, &a->skews);
	nps_find__rows(document, &worst, r, a->worst, a->nworst, sizeof(a->worst[0]));
	add_steps_section(r, document);
	find.list = cJSON_AddArrayToObject(document, "findings");
	if (!find.list)
		return -ENOMEM;
	err = slow_rank(r, &find);
	err = err ? err : uneven(r, &find, COMPUTING, "computing");
	return err ? err : uneven(r, &find, FREE, "idle");
}

int nps_ranks__compare(struct nps_ranks *r, cJSON **document)
{
	struct arrivals *a;
	int err;

	*document = NULL;
	if (r->list.len < 2)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	for (size_t i = 1; i < r->list.len; i++) { /* those of the first are listed in their order */
		struct nps_vec *of = &rank_at(r, i)->steps;

		if (of->len)
			qsort(of->data, of->len, of->elem, by_key);
	}
	err = align_ranks(r);
	sort_ops(r, by_key);
	err = err ? err : compare_clocks(r);
	if (err)
		goto out;
	rewind_ops(r);
	for (uint64_t key = next_common(r, 0); key; key = next_common(r, key))
		note_collective(r, a, key);
	*document = cJSON_CreateObject();
	err = *document ? ranks_report(r, a, *document) : -ENOMEM;
	if (err) {
		cJSON_Delete(*document);
		*document = NULL;
	}
out:
	free(a);
	return err;
}

static void show_arrivals(const struct nps_view *v, const cJSON *object)
{
	double common = nps_view__number(object, "common_collectives");
	double unknown = nps_view__number(object, "collectives_not_matched");

	if (common > 0)
		fprintf(v->out,
			"\nranks arrive apart in %.0f collectives: %.3f us on average, median %.3f, p99 "
			"%.3f, at "
			"most %.3f\n",
			common, nps_view__number(object, "mean_skew_us"),
			nps_view__number(object, "p50_skew_us"), nps_view__number(object, "p99_skew_us"),
			nps_view__number(object, "max_skew_us"));
	else if (!(unknown > 0))
		fprintf(v->out,
			"\nwho arrives late is not known: no collective has the same name and group in "
			"two ranks\n");
	if (unknown > 0)
		fprintf(v->out,
			"\nwho arrives late is not known of %.0f collectives: those of the same name and "
			"group in other ranks end at other times\n",
			unknown);
}

void nps_ranks__show(const struct nps_view *v)
{
	nps_view__table(v, &ranks);
	show_arrivals(v, nps_view__at(v, "arrivals"));
	nps_view__table(v, &worst);
	nps_view__table(v, &steps);
	nps_question__show(&nps_question_findings, v);
}
