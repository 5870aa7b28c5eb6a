/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/doubts.h"

#include "base/map.h"

#include <errno.h>

struct span {
	uint64_t from, to;
	uint32_t proc;
};

void nps_doubts__init(struct nps_doubts *doubts, int tmpfd)
{
	nps_vec__init(&doubts->spans, tmpfd, sizeof(struct span));
}

void nps_doubts__free(struct nps_doubts *doubts)
{
	nps_vec__free(&doubts->spans);
}

int nps_doubts__add(struct nps_doubts *doubts, uint32_t proc, uint64_t from, uint64_t to)
{
	struct span *span = doubts->spans.len < NPS_NONE ? nps_vec__push(&doubts->spans) : NULL;

	if (!span)
		return -ENOMEM;
	*span = (struct span){ from, to, proc };
	return 0;
}

/* Merges the spans of a process that meet, so that either end can be searched. Returns N with NEXT. */
static size_t merge(struct span *sorted, size_t n, const struct span *next)
{
	if (n && sorted[n - 1].proc == next->proc && sorted[n - 1].to >= next->from) {
		sorted[n - 1].to = NPS_MAX(sorted[n - 1].to, next->to);
		return n;
	}
	sorted[n] = *next;
	return n + 1;
}

int nps_doubts__finish(struct nps_doubts *doubts)
{
	const struct span *spans = doubts->spans.data;
	size_t n = doubts->spans.len;
	struct nps_vec keys, sorted;
	struct nps_key *key;
	int err;

	if (!n)
		return 0;
	nps_vec__init(&keys, doubts->spans.dirfd, sizeof(struct nps_key));
	nps_vec__init(&sorted, doubts->spans.dirfd, sizeof(struct span));
	err = nps_vec__resize(&keys, 2 * n);
	if (!err)
		err = nps_vec__reserve(&sorted, n);
	if (!err) {
		key = keys.data;
		for (size_t i = 0; i < n; i++)
			key[i] = (struct nps_key){ .key = spans[i].from, .row = i, .group = spans[i].proc };
		nps_sort_keys(key, key + n, n);
		nps_sort_groups(key, key + n, n);
		for (size_t i = 0; i < n; i++)
			sorted.len = merge(sorted.data, sorted.len, &spans[key[i].row]);
	}
	nps_vec__free(&keys);
	nps_vec__free(&doubts->spans);
	doubts->spans = sorted;
	return err;
}

bool nps_doubts__in(const struct nps_doubts *doubts, uint32_t proc, uint64_t from, uint64_t to)
{
	const struct span *spans = doubts->spans.data;
	size_t low = 0, high = doubts->spans.len;

	while (low < high) { /* the first one that ends at FROM or later */
		size_t mid = low + (high - low) / 2;

		if (spans[mid].proc < proc || (spans[mid].proc == proc && spans[mid].to < from))
			low = mid + 1;
		else
			high = mid;
	}
	return low < doubts->spans.len && spans[low].proc == proc && spans[low].from <= to;
}
