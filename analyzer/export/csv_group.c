/* SPDX-License-Identifier: BSD-2-Clause */
/* Grouping by counting: rows are walked in their order, whether the keys are few (devices) or many (collectives). */
#include "export/csv_tables.h"

#include <errno.h>
#include <stdlib.h>

struct bucket {
	uint64_t key;
	size_t rows; /* then: where its next row goes */
};

struct grouping {
	struct nps_vec buckets; /* struct bucket, one for each key */
	struct nps_map of; /* key -> bucket */
};

static int by_key(const void *a, const void *b)
{
	const struct bucket *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static struct bucket *find(const struct grouping *g, uint64_t key)
{
	return &NPS_AT(&g->buckets, struct bucket, nps_map__get(&g->of, key));
}

static int add_bucket(struct grouping *g, uint64_t key)
{
	struct bucket *bucket = nps_vec__push(&g->buckets);

	if (!bucket)
		return -errno;
	bucket->key = key;
	return nps_map__put(&g->of, key, g->buckets.len - 1);
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

	qsort(g->buckets.data, g->buckets.len, sizeof(struct bucket), by_key);
	nps_map__clear(&g->of);
	for (size_t i = 0; !err && i < g->buckets.len; i++)
		err = nps_map__put(&g->of, NPS_AT(&g->buckets, struct bucket, i).key, i);
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

	nps_vec__init(&g.buckets, model->tmpfd, sizeof(struct bucket));
	nps_vec__init(&groups->order, model->tmpfd, sizeof(uint32_t));
	groups->len = len;
	err = collect(&g, &pace, len, key, ctx, &sorted);
	if (err || sorted)
		goto out;
	err = sort_buckets(&g);
	if (!err)
		err = nps_vec__resize(&groups->order, len);
	if (err)
		goto out;
	for (size_t i = 0; i < len; i++) {
		find(&g, key(ctx, i))->rows++;
		nps_pace__step(&pace);
	}
	for (size_t i = 0; i < g.buckets.len; i++) {
		struct bucket *bucket = &NPS_AT(&g.buckets, struct bucket, i);
		size_t rows = bucket->rows;

		bucket->rows = sum;
		sum += rows;
	}
	for (size_t i = 0; i < len; i++) {
		NPS_AT(&groups->order, uint32_t, find(&g, key(ctx, i))->rows++) = i;
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&groups->order);
		nps_pace__step(&pace);
	}
out:
	nps_vec__free(&g.buckets);
	nps_map__free(&g.of);
	return err;
}
