/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/history.h"

#include <errno.h>

struct history_row {
	uint64_t key, time, value;
	uint32_t count; /* rows of the key, in its first one, after finish */
	uint32_t pad;
};

void nps_history__init(struct nps_history *history, int dirfd)
{
	*history = (struct nps_history){ 0 };
	nps_vec__init(&history->rows, dirfd, sizeof(struct history_row));
}

static int history_push(struct nps_history *history, uint64_t key, uint64_t time, uint64_t value)
{
	uint32_t last = nps_map__get(&history->last, key);
	struct history_row *row = nps_vec__push(&history->rows);

	if (!row || history->rows.len >= NPS_NONE)
		return -ENOMEM;
	*row = (struct history_row){ .key = key, .time = time, .value = value };
	if (last != NPS_NONE && NPS_AT(&history->rows, struct history_row, last).time > time)
		return 0;
	return nps_map__put(&history->last, key, history->rows.len - 1);
}

int nps_history__add(struct nps_history *history, uint64_t key, uint64_t time, uint64_t value)
{
	uint32_t last = nps_map__get(&history->last, key);

	if (last != NPS_NONE) {
		const struct history_row *old = &NPS_AT(&history->rows, struct history_row, last);

		if (old->value == value && old->time <= time)
			return 0;
	}
	return history_push(history, key, time, value);
}

int nps_history__reset(struct nps_history *history, uint64_t key, uint64_t time)
{
	return history_push(history, key, time, NPS_NONE); /* even after another: nobody looks across one */
}

/* Keys of the rows, in order of key and time; KEYS has room for twice the rows. */
static int history_sort_rows(struct nps_history *history, struct nps_key *keys, size_t n)
{
	uint32_t ngroups = 0;
	int err = 0;

	nps_map__clear(&history->last);
	for (size_t i = 0; !err && i < n; i++) {
		const struct history_row *row = &NPS_AT(&history->rows, struct history_row, i);
		uint32_t group = nps_map__get(&history->last, row->key);

		if (group == NPS_NONE) {
			group = ngroups++;
			err = nps_map__put(&history->last, row->key, group);
		}
		keys[i] = (struct nps_key){ .key = row->time, .row = i, .group = group };
	}
	nps_sort_keys(keys, keys + n, n);
	nps_sort_groups(keys, keys + n, n);
	return err;
}

int nps_history__finish(struct nps_history *history)
{
	size_t n = history->rows.len, first = 0;
	struct nps_vec keys, sorted;
	struct history_row *to;
	int err;

	nps_vec__init(&keys, history->rows.dirfd, sizeof(struct nps_key));
	nps_vec__init(&sorted, history->rows.dirfd, sizeof(struct history_row));
	err = nps_vec__resize(&keys, 2 * n);
	if (err)
		goto out;
	err = nps_vec__resize(&sorted, n);
	if (err)
		goto out;
	if (n)
		err = history_sort_rows(history, keys.data, n);
	to = sorted.data;
	for (size_t i = 0; !err && i < n; i++) {
		to[i] = NPS_AT(&history->rows, struct history_row, NPS_AT(&keys, struct nps_key, i).row);
		if (!i || to[i].key != to[first].key) {
			first = i;
			err = nps_map__put(&history->last, to[i].key, i);
		}
		to[first].count++;
	}
out:
	nps_vec__free(&keys);
	nps_vec__free(&history->rows);
	history->rows = sorted;
	return err;
}

/* The first row after TIME of those of a key, [LOW, HIGH). */
static size_t after(const struct history_row *rows, size_t low, size_t high, uint64_t time)
{
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (rows[mid].time <= time)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool nps_history__at(const struct nps_history *history, uint64_t key, uint64_t time, uint64_t *value)
{
	uint32_t first = nps_map__get(&history->last, key);
	const struct history_row *rows = history->rows.data;
	size_t next;

	if (first == NPS_NONE)
		return false;
	next = after(rows, first, (size_t)first + rows[first].count, time);
	if (next == first)
		return false;
	*value = rows[next - 1].value;
	return true;
}

bool nps_history__near(const struct nps_history *history, uint64_t key, uint64_t time, uint64_t *value)
{
	uint32_t first = nps_map__get(&history->last, key);
	const struct history_row *rows = history->rows.data;
	size_t next, end;

	if (nps_history__at(history, key, time, value) && *value != NPS_NONE)
		return true;
	if (first == NPS_NONE)
		return false;
	end = (size_t)first + rows[first].count;
	next = after(rows, first, end, time);
	if (next == end || rows[next].value == NPS_NONE)
		return false;
	*value = rows[next].value;
	return true;
}

int nps_history__keys(const struct nps_history *history, uint64_t value, struct nps_map *map)
{
	int err = 0;

	for (size_t i = 0; !err && i < history->rows.len; i++) {
		const struct history_row *row = &NPS_AT(&history->rows, struct history_row, i);

		if (row->value == value)
			err = nps_map__put(map, row->key, 1);
	}
	return err;
}

void nps_history__free(struct nps_history *history)
{
	nps_vec__free(&history->rows);
	nps_map__free(&history->last);
}
