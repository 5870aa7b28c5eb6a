/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups rows by a key. Rows that are grouped already, as in most tables of one device, are not sorted. */
#include "base/ext_sort.h"
#include "export/csv_tables.h"

#include <errno.h>

static bool grouped(struct nps_pace *pace, size_t len, uint64_t (*key)(const void *ctx, size_t row),
		    const void *ctx)
{
	uint64_t before = 0, k;

	for (size_t i = 0; i < len; i++, before = k) {
		k = key(ctx, i);
		if (k < before)
			return false;
		nps_pace__step(pace);
	}
	return true;
}

int nps_csv__push_row(struct nps_csv_groups *groups, uint32_t row)
{
	uint32_t *to = nps_vec__push(&groups->order);

	if (!to)
		return -errno;
	*to = row;
	return 0;
}

int nps_csv__group(struct nps_csv_groups *groups, const struct nps_model *model, size_t len,
		   uint64_t (*key)(const void *ctx, size_t row), const void *ctx)
{
	struct nps_pace pace = { .model = model };
	const struct nps_sort_key *next; /* high: the group's key; low: the row */
	struct nps_ext_sort sort;
	int err = 0;

	nps_vec__init(&groups->order, model->tmpfd, sizeof(uint32_t));
	groups->len = len;
	if (grouped(&pace, len, key, ctx))
		return 0;
	nps_ext_sort__init(&sort, model->tmpfd, sizeof(*next));
	for (size_t i = 0; !sort.err && i < len; i++) {
		struct nps_sort_key *to = nps_ext_sort__add(&sort);

		if (to)
			*to = (struct nps_sort_key){ key(ctx, i), i };
		nps_pace__step(&pace);
	}
	nps_ext_sort__finish(&sort);
	while (!err && (next = nps_ext_sort__next(&sort))) {
		err = nps_csv__push_row(groups, next->low);
		nps_pace__step(&pace);
	}
	err = err ? err : sort.err;
	nps_ext_sort__free(&sort);
	return err;
}
