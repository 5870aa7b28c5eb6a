/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/group_by.h"

#include <errno.h>
#include <stdlib.h>

void nps_group_by__init(struct nps_group_by *groups, const struct nps_model *model, size_t size)
{
	*groups = (struct nps_group_by){ 0 };
	nps_vec__init(&groups->rows, model->tmpfd, size);
}

void nps_group_by__free(struct nps_group_by *groups)
{
	nps_vec__free(&groups->rows);
	nps_map__free(&groups->of);
}

static bool is_of(const struct nps_group *group, uint64_t key, uint64_t sub)
{
	return group->key == key && group->sub == sub;
}

/* The row of (KEY, SUB), NPS_NONE: there is none. *SLOT: the hash under which it is, or would be. */
static uint32_t group_find(const struct nps_group_by *groups, uint64_t key, uint64_t sub, uint64_t *slot)
{
	uint32_t row;

	*slot = nps_hash2(nps_hash2(key, nps_map__seed()), sub);
	/* Another key with the same hash has taken it: the next one. */
	while ((row = nps_map__get(&groups->of, *slot)) != NPS_NONE &&
	       !is_of(nps_group_by__at(groups, row), key, sub))
		++*slot;
	return row;
}

void *nps_group_by__get_other(struct nps_group_by *groups, uint64_t key, uint64_t sub)
{
	struct nps_group *group;
	uint64_t slot;
	uint32_t row;

	row = group_find(groups, key, sub, &slot);
	if (row != NPS_NONE) {
		groups->last = row;
		return nps_group_by__at(groups, row);
	}
	group = nps_vec__push(&groups->rows);
	if (!group)
		return NULL;
	if (nps_map__put(&groups->of, slot, groups->rows.len - 1)) {
		groups->rows.len--;
		errno = ENOMEM;
		return NULL;
	}
	group->key = key;
	group->sub = sub;
	groups->last = groups->rows.len - 1;
	return group;
}

void *nps_group_by__find(const struct nps_group_by *groups, uint64_t key, uint64_t sub)
{
	uint64_t slot;
	uint32_t row = group_find(groups, key, sub, &slot);

	return row == NPS_NONE ? NULL : nps_group_by__at(groups, row);
}

void nps_group__add_sum(struct nps_group *group, uint64_t count, uint64_t total, uint64_t least,
			uint64_t most)
{
	group->least = group->measured ? NPS_MIN(group->least, least) : least;
	group->most = NPS_MAX(group->most, most);
	group->total = nps_add_sat(group->total, total);
	group->count = nps_add_sat(group->count, count);
	group->measured = nps_add_sat(group->measured, count);
}

int nps_group__by_key(const void *a, const void *b)
{
	const struct nps_group *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->sub < y->sub ? -1 : x->sub > y->sub;
}

int nps_group__by_total(const void *a, const void *b)
{
	const struct nps_group *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return nps_group__by_key(a, b);
}

static int compare_without_context(const void *a, const void *b, void *compare)
{
	return (*(int (**)(const void *, const void *))compare)(a, b);
}

void nps_group_by__sort(struct nps_group_by *groups, int (*compare)(const void *, const void *))
{
	nps_group_by__sort_by(groups, compare_without_context, &compare);
}

void nps_group_by__sort_by(struct nps_group_by *groups, int (*compare)(const void *, const void *, void *),
			   void *ctx)
{
	if (groups->rows.len)
		qsort_r(groups->rows.data, groups->rows.len, groups->rows.elem, compare, ctx);
	nps_map__free(&groups->of);
	groups->of = (struct nps_map){ 0 };
}
