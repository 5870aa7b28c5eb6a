/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of rows: a table is filled file by file and device by device, each in order or nearly so. The
 * sorter merges these runs; then columns are copied one by one.
 */
#include "base/ext_sort.h"
#include "base/vec.h"
#include "schema/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool in_order(const struct nps_table *table, const uint64_t *times)
{
	for (size_t i = 1; i < table->len; i++)
		if (times[i] < times[i - 1])
			return false;
	return true;
}

/* Which row comes when. */
static int table_sort_rows(const struct nps_table *table, const uint64_t *times, struct nps_vec *order)
{
	struct nps_ext_sort sort;
	const struct nps_sort_key *key;
	size_t at = 0;
	int err;

	nps_ext_sort__init(&sort, table->dirfd, sizeof(*key));
	for (size_t i = 0; !sort.err && i < table->len; i++) {
		struct nps_sort_key *to = nps_ext_sort__add(&sort);

		if (to)
			*to = (struct nps_sort_key){ .high = times[i], .low = i };
	}
	err = sort.err ? sort.err : nps_ext_sort__finish(&sort);
	err = err ? err : nps_vec__resize(order, table->len);
	if (err)
		goto out;
	while (at < table->len && (key = nps_ext_sort__next(&sort)))
		NPS_AT(order, uint64_t, at++) = key->low;
	err = sort.err;
out:
	nps_ext_sort__free(&sort);
	return err;
}

static void copy_column(const struct nps_table *to, const struct nps_table *from, size_t column,
			const struct nps_vec *order)
{
	size_t size = from->columns[column].size;
	const char *source = nps_table__cells(from, column);
	char *target = nps_table__cells(to, column);

	for (size_t i = 0; i < from->len; i++) {
		memcpy(target + i * size, source + NPS_AT(order, uint64_t, i) * size, size);
		if (!(~i & (NPS_TABLE_HOT - 1))) {
			nps_table__cool(from);
			nps_table__cool(to);
			nps_vec__cool(order);
		}
	}
}

int nps_table__order(struct nps_table *table, size_t time)
{
	size_t bytes = sizeof(*table) + table->ncolumns * sizeof(void *);
	struct nps_table *sorted, *old;
	struct nps_vec order;
	int err;

	if (in_order(table, nps_table__cells(table, time)))
		return 0;
	sorted = calloc(1, bytes);
	old = malloc(bytes);
	if (!sorted || !old) {
		free(sorted);
		free(old);
		return -ENOMEM;
	}
	nps_vec__init(&order, table->dirfd, sizeof(uint64_t));
	err = table_sort_rows(table, nps_table__cells(table, time), &order);
	err = err ? err : nps_table__init(sorted, table->columns, table->ncolumns, table->dirfd);
	err = err ? err : nps_table__resize(sorted, table->len);
	if (err)
		goto out_table;
	for (size_t i = 0; i < table->ncolumns; i++)
		copy_column(sorted, table, i, &order);
	/* The two are swapped: a table and the pointers to its cells are one object. */
	memcpy(old, table, bytes);
	memcpy(table, sorted, bytes);
	memcpy(sorted, old, bytes);
out_table:
	nps_table__free(sorted);
	nps_vec__free(&order);
	free(sorted);
	free(old);
	return err;
}

int nps_table__clip(struct nps_table *table, size_t time, uint64_t from, uint64_t to)
{
	const uint64_t *times = table->len ? nps_table__cells(table, time) : NULL;
	size_t first = 0, end = table->len;

	while (first < end && times[first] < from)
		first++;
	while (end > first && times[end - 1] > to)
		end--;
	for (size_t i = 0; first && i < table->ncolumns; i++) {
		char *cells = nps_table__cells(table, i);
		size_t size = table->columns[i].size;

		memmove(cells, cells + first * size, (end - first) * size);
	}
	return nps_table__resize(table, end - first);
}
