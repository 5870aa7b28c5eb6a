/* SPDX-License-Identifier: BSD-2-Clause */
/* Grouping by counting: the rows may be many, the keys (devices, modules) are few. */
#include "export/csv_tables.h"

#include <errno.h>
#include <stdlib.h>

#define KEYS_MAX 65536 /* beyond, rows stay ungrouped at the end: no real capture has that many */

struct bucket {
	uint64_t key;
	size_t rows; /* then: where its next row goes */
};

static int by_key(const void *a, const void *b)
{
	const struct bucket *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

struct grouping {
	struct bucket *buckets; /* the last is for what has no own one */
	size_t nbuckets, room;
	struct nps_map of; /* key -> bucket */
};

static uint32_t find(const struct grouping *g, uint64_t key)
{
	uint32_t bucket = nps_map__get(&g->of, key);

	return bucket == NPS_NONE ? g->nbuckets : bucket;
}

static int add_bucket(struct grouping *g, uint64_t key)
{
	if (g->nbuckets == KEYS_MAX)
		return 0;
	if (g->nbuckets + 1 >= g->room) {
		size_t room = g->room ? 2 * g->room : 64;
		struct bucket *more = realloc(g->buckets, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		g->buckets = more;
		g->room = room;
	}
	g->buckets[g->nbuckets] = (struct bucket){ .key = key };
	return nps_map__put(&g->of, key, g->nbuckets++);
}

/* Stores the keys; *SORTED: the rows are grouped as they are. */
static int collect(struct grouping *g, struct nps_pace *pace, size_t len,
		   uint64_t (*key)(const void *ctx, size_t row), const void *ctx, bool *sorted)
{
	uint64_t before = 0;
	int err = 0;

	*sorted = true;
	for (size_t i = 0; !err && i < len; i++) {
		uint64_t k = key(ctx, i);

		*sorted &= k >= before;
		if ((!i || k != before) && nps_map__get(&g->of, k) == NPS_NONE)
			err = add_bucket(g, k);
		before = k;
		nps_pace__step(pace);
	}
	return err;
}

static int sort_buckets(struct grouping *g)
{
	int err = 0;

	qsort(g->buckets, g->nbuckets, sizeof(*g->buckets), by_key);
	nps_map__clear(&g->of);
	for (size_t i = 0; !err && i < g->nbuckets; i++)
		err = nps_map__put(&g->of, g->buckets[i].key, i);
	g->buckets[g->nbuckets] = (struct bucket){ 0 };
	return err;
}

int nps_csv__group(struct nps_csv_groups *groups, const struct nps_model *model, size_t len,
		   uint64_t (*key)(const void *ctx, size_t row), const void *ctx)
{
	struct nps_pace pace = { .model = model };
	struct grouping g = { 0 };
	size_t sum = 0;
	bool sorted;
	int err;

	nps_vec__init(&groups->order, model->tmpfd, sizeof(uint32_t));
	groups->len = len;
	err = collect(&g, &pace, len, key, ctx, &sorted);
	if (err || sorted || !g.buckets)
		goto out;
	err = sort_buckets(&g);
	if (!err)
		err = nps_vec__resize(&groups->order, len);
	if (err)
		goto out;
	for (size_t i = 0; i < len; i++) {
		g.buckets[find(&g, key(ctx, i))].rows++;
		nps_pace__step(&pace);
	}
	for (size_t i = 0; i <= g.nbuckets; i++) {
		size_t rows = g.buckets[i].rows;

		g.buckets[i].rows = sum;
		sum += rows;
	}
	for (size_t i = 0; i < len; i++) {
		NPS_AT(&groups->order, uint32_t, g.buckets[find(&g, key(ctx, i))].rows++) = i;
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&groups->order);
		nps_pace__step(&pace);
	}
out:
	free(g.buckets);
	nps_map__free(&g.of);
	return err;
}
