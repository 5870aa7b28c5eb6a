/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GROUP BY: rows with a key of two numbers in common become one group, in the order of their first
 * appearance, with the sums that most callers want. Other sums are behind struct nps_group in an element of
 * the caller's own.
 */
#ifndef NPS_GROUP_BY_H
#define NPS_GROUP_BY_H

#include "base/map.h"
#include "base/vec.h"
#include "model/model.h"

struct nps_group {
	uint64_t key, sub; /* what the rows have in common */
	uint64_t count; /* rows, or events of which a row is the sum */
	uint64_t measured; /* of these, how many have a duration */
	uint64_t total, least, most; /* ns of all durations, of the shortest and of the longest */
	size_t longest; /* row of the longest, of several the first; until there is one, the first row */
};

struct nps_group_by {
	struct nps_vec rows; /* elements, each begins with a struct nps_group */
	struct nps_map of; /* hash of a key -> row of it */
	size_t last; /* the group of the row before: rows of one group come in runs */
};

/* Groups in elements of SIZE bytes, which begin with a struct nps_group. Frees with nps_group_by__free(). */
void nps_group_by__init(struct nps_group_by *groups, const struct nps_model *model, size_t size);
void nps_group_by__free(struct nps_group_by *groups);

static inline size_t nps_group_by__len(const struct nps_group_by *groups)
{
	return groups->rows.len;
}

/* Element I; valid until a group is added. */
static inline void *nps_group_by__at(const struct nps_group_by *groups, size_t i)
{
	return (char *)groups->rows.data + i * groups->rows.elem;
}

/* nps_group_by__get() of a key that is not that of the row before. */
void *nps_group_by__get_other(struct nps_group_by *groups, uint64_t key, uint64_t sub);

/* The element of (KEY, SUB), if new zeros but for its key; valid until a group is added. NULL with errno. */
static inline void *nps_group_by__get(struct nps_group_by *groups, uint64_t key, uint64_t sub)
{
	const struct nps_group *last;

	if (groups->last < groups->rows.len) {
		last = nps_group_by__at(groups, groups->last);
		if (last->key == key && last->sub == sub)
			return (void *)last;
	}
	return nps_group_by__get_other(groups, key, sub);
}

/* The same if there is one, else NULL. */
void *nps_group_by__find(const struct nps_group_by *groups, uint64_t key, uint64_t sub);

/* A row that nobody measured. */
static inline void nps_group__count(struct nps_group *group, size_t row)
{
	if (!group->count)
		group->longest = row;
	group->count++;
}

/* A row that took NS. */
static inline void nps_group__add(struct nps_group *group, uint64_t ns, size_t row)
{
	if (!group->measured || ns > group->most) {
		group->most = ns;
		group->longest = row;
	}
	if (!group->measured || ns < group->least)
		group->least = ns;
	group->total = nps_add_sat(group->total, ns);
	group->count++;
	group->measured++;
}

/* COUNT events that were summed up: what they took in all, the shortest and the longest of them, ns. */
void nps_group__add_sum(struct nps_group *group, uint64_t count, uint64_t total, uint64_t least,
			uint64_t most);

/* By key. */
int nps_group__by_key(const void *a, const void *b);

/* The longest total first; equal ones by key. */
int nps_group__by_total(const void *a, const void *b);

/* Brings the groups into the order of COMPARE, which gets elements. Nothing can be added any more. */
void nps_group_by__sort(struct nps_group_by *groups, int (*compare)(const void *, const void *));
void nps_group_by__sort_by(struct nps_group_by *groups, int (*compare)(const void *, const void *, void *),
			   void *ctx);

#endif
