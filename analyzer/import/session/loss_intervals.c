/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/loss_intervals.h"

#include "base/map.h"

#include <errno.h>

struct loss_span {
	uint64_t from, to;
	uint32_t proc;
};

void nps_loss_intervals__init(struct nps_loss_intervals *intervals, int tmpfd)
{
	nps_vec__init(&intervals->spans, tmpfd, sizeof(struct loss_span));
}

void nps_loss_intervals__free(struct nps_loss_intervals *intervals)
{
	nps_vec__free(&intervals->spans);
}

int nps_loss_intervals__add(struct nps_loss_intervals *intervals, uint32_t proc, uint64_t from, uint64_t to)
{
	struct loss_span *span = intervals->spans.len < NPS_NONE ? nps_vec__push(&intervals->spans) : NULL;

	if (!span)
		return -ENOMEM;
	*span = (struct loss_span){ from, to, proc };
	return 0;
}

/* Merges the spans of a process that meet, so that either end can be searched. Returns N with NEXT. */
static size_t spans_merge(struct loss_span *sorted, size_t n, const struct loss_span *next)
{
	if (n && sorted[n - 1].proc == next->proc && sorted[n - 1].to >= next->from) {
		sorted[n - 1].to = NPS_MAX(sorted[n - 1].to, next->to);
		return n;
	}
	sorted[n] = *next;
	return n + 1;
}

int nps_loss_intervals__finish(struct nps_loss_intervals *intervals)
{
	const struct loss_span *spans = intervals->spans.data;
	size_t n = intervals->spans.len;
	struct nps_vec keys, sorted;
	struct nps_key *key;
	int err;

	if (!n)
		return 0;
	nps_vec__init(&keys, intervals->spans.dirfd, sizeof(struct nps_key));
	nps_vec__init(&sorted, intervals->spans.dirfd, sizeof(struct loss_span));
	err = nps_vec__resize(&keys, 2 * n);
	if (err)
		goto out;
	err = nps_vec__reserve(&sorted, n);
	if (err)
		goto out;
	key = keys.data;
	for (size_t i = 0; i < n; i++)
		key[i] = (struct nps_key){ .key = spans[i].from, .row = i, .group = spans[i].proc };
	nps_sort_keys(key, key + n, n);
	nps_sort_groups(key, key + n, n);
	for (size_t i = 0; i < n; i++)
		sorted.len = spans_merge(sorted.data, sorted.len, &spans[key[i].row]);
out:
	nps_vec__free(&keys);
	nps_vec__free(&intervals->spans);
	intervals->spans = sorted;
	return err;
}

bool nps_loss_intervals__overlap(const struct nps_loss_intervals *intervals, uint32_t proc, uint64_t from,
				 uint64_t to)
{
	const struct loss_span *spans = intervals->spans.data;
	size_t low = 0, high = intervals->spans.len;

	while (low < high) { /* the first one that ends at FROM or later */
		size_t mid = low + (high - low) / 2;

		if (spans[mid].proc < proc || (spans[mid].proc == proc && spans[mid].to < from))
			low = mid + 1;
		else
			high = mid;
	}
	return low < intervals->spans.len && spans[low].proc == proc && spans[low].from <= to;
}
