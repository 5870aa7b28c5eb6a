/* SPDX-License-Identifier: BSD-2-Clause */
#include "history.h"

#include <errno.h>
#include <stdlib.h>

struct row {
	uint64_t key, time, value;
	uint32_t before; /* earlier row of the key */
	uint32_t pad;
};

void nps_history__init(struct nps_history *history, int dirfd)
{
	*history = (struct nps_history){ 0 };
	nps_vec__init(&history->rows, dirfd, sizeof(struct row));
}

int nps_history__add(struct nps_history *history, uint64_t key, uint64_t time, uint64_t value)
{
	uint32_t last = nps_map__get(&history->last, key);
	struct row *row;

	if (last != NPS_NONE) {
		const struct row *old = &NPS_AT(&history->rows, struct row, last);

		if (old->value == value && old->time <= time)
			return 0;
	}
	row = nps_vec__push(&history->rows);
	if (!row || history->rows.len >= NPS_NONE)
		return -ENOMEM;
	*row = (struct row){ .key = key, .time = time, .value = value };
	return nps_map__put(&history->last, key, history->rows.len - 1);
}

int nps_history__finish(struct nps_history *history)
{
	size_t n = history->rows.len;
	struct nps_key *keys = calloc(2 * n + 1, sizeof(*keys));
	int err = 0;

	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct nps_key){ .key = NPS_AT(&history->rows, struct row, i).time, .row = i };
	nps_sort_keys(keys, keys + n, n);
	nps_map__clear(&history->last);
	for (size_t i = 0; !err && i < n; i++) {
		struct row *row = &NPS_AT(&history->rows, struct row, keys[i].row);

		row->before = nps_map__get(&history->last, row->key);
		err = nps_map__put(&history->last, row->key, keys[i].row);
	}
	free(keys);
	return err;
}

bool nps_history__at(const struct nps_history *history, uint64_t key, uint64_t time, uint64_t *value)
{
	uint32_t at = nps_map__get(&history->last, key);

	while (at != NPS_NONE) {
		const struct row *row = &NPS_AT(&history->rows, struct row, at);

		if (row->time <= time) {
			*value = row->value;
			return true;
		}
		at = row->before;
	}
	return false;
}

bool nps_history__first(const struct nps_history *history, uint64_t key, uint64_t *value)
{
	uint32_t at = nps_map__get(&history->last, key);

	if (at == NPS_NONE)
		return false;
	for (;;) {
		const struct row *row = &NPS_AT(&history->rows, struct row, at);

		*value = row->value;
		if (row->before == NPS_NONE)
			return true;
		at = row->before;
	}
}

void nps_history__free(struct nps_history *history)
{
	nps_vec__free(&history->rows);
	nps_map__free(&history->last);
}
