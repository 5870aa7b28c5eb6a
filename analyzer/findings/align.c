/* SPDX-License-Identifier: BSD-2-Clause */
#include "findings/align.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

/* X and Y of a group, and room for a number for each of Y. */
struct pair {
	const struct nps_rank_op *x;
	struct nps_rank_op *y;
	size_t nx, ny;
	int64_t *numbers;
};

static int64_t median(struct pair *p, size_t n)
{
	qsort(p->numbers, n, sizeof(*p->numbers), nps_by_i64);
	return p->numbers[n / 2];
}

static int64_t apart(const struct nps_rank_op *x, const struct nps_rank_op *y)
{
	uint64_t ns = x->end > y->end ? x->end - y->end : y->end - x->end;

	return NPS_MIN(ns, (uint64_t)INT64_MAX);
}

/* How far ends of the same name are apart; INT64_MAX: there are none. */
static int apart_by_name(struct pair *p, int64_t *ns)
{
	struct nps_map row_of = { 0 };
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; !err && i < p->nx; i++)
		err = nps_map__put(&row_of, p->x[i].key, i);
	for (size_t i = 0; !err && i < p->ny; i++) {
		uint32_t row = nps_map__get(&row_of, p->y[i].key);

		if (row != NPS_NONE)
			p->numbers[n++] = apart(&p->x[row], &p->y[i]);
	}
	nps_map__free(&row_of);
	*ns = n ? median(p, n) : INT64_MAX;
	return err;
}

/* How far Y's numbers are ahead of X's, judged by the ends that are next to each other. */
static int64_t find_shift(struct pair *p)
{
	size_t n = 0, at = 0;

	for (size_t i = 0; i < p->ny; i++) {
		uint64_t end = p->y[i].end;

		if (end < p->x[0].end || end > p->x[p->nx - 1].end)
			continue; /* X was not there */
		while (at + 1 < p->nx && p->x[at + 1].end <= end)
			at++;
		if (at + 1 < p->nx && p->x[at + 1].end - end < end - p->x[at].end)
			p->numbers[n++] = (int64_t)p->y[i].ordinal - p->x[at + 1].ordinal;
		else
			p->numbers[n++] = (int64_t)p->y[i].ordinal - p->x[at].ordinal;
	}
	return n ? median(p, n) : 0;
}

/* Steps on to the next pair of X[*a - 1] and Y[*b - 1] whose numbers differ by SHIFT. */
static bool next_pair(const struct pair *p, int64_t shift, size_t *a, size_t *b)
{
	while (*a < p->nx && *b < p->ny) {
		int64_t ahead = (int64_t)p->y[*b].ordinal - p->x[*a].ordinal - shift;

		*a += ahead >= 0;
		*b += ahead <= 0;
		if (!ahead)
			return true;
	}
	return false;
}

/* How far ends of pairs with numbers SHIFT apart differ; INT64_MAX: most are not even of one kind. */
static int64_t apart_at(struct pair *p, int64_t shift)
{
	size_t a = 0, b = 0, n = 0, others = 0;

	while (next_pair(p, shift, &a, &b)) {
		if (p->x[a - 1].kind == p->y[b - 1].kind)
			p->numbers[n++] = apart(&p->x[a - 1], &p->y[b - 1]);
		else
			others++;
	}
	return n > others ? median(p, n) : INT64_MAX;
}

static void forget_keys(struct pair *p)
{
	for (size_t i = 0; i < p->ny; i++)
		p->y[i].key = NPS_ALIGN_NOBODY;
}

static void copy_keys(struct pair *p, int64_t shift)
{
	size_t a = 0, b = 0;

	forget_keys(p);
	while (next_pair(p, shift, &a, &b))
		if (p->x[a - 1].kind == p->y[b - 1].kind)
			p->y[b - 1].key = p->x[a - 1].key;
}

int nps_align__group(const struct nps_rank_op *x, size_t nx, struct nps_rank_op *y, size_t ny, bool *unknown)
{
	struct pair p = { x, y, nx, ny, malloc((ny + 1) * sizeof(*p.numbers)) };
	int64_t named, shift, aligned;
	int err = p.numbers ? apart_by_name(&p, &named) : -ENOMEM;

	*unknown = false;
	if (!err && nx && ny) {
		shift = find_shift(&p);
		aligned = apart_at(&p, shift);
		/* Much better only: ends are never quite the same, and names are right as a rule. */
		if (aligned <= NPS_ALIGN_CLOSE && aligned < named / 2)
			copy_keys(&p, shift);
		else
			*unknown = named > NPS_ALIGN_CLOSE && named != INT64_MAX;
		if (*unknown)
			forget_keys(&p);
	}
	free(p.numbers);
	return err;
}
