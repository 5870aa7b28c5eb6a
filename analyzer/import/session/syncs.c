/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/syncs.h"

#include <stdlib.h>

static int by_stream(const struct nps_sync *x, const struct nps_sync *y)
{
	if (x->proc != y->proc)
		return x->proc < y->proc ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->stream < y->stream ? -1 : x->stream > y->stream;
}

static int by_stream_and_cover(const void *a, const void *b)
{
	const struct nps_sync *x = a, *y = b;
	int order = by_stream(x, y);

	return order ? order : x->cover < y->cover ? -1 : x->cover > y->cover;
}

void nps_syncs__sort(struct nps_session *model)
{
	if (model->syncs.len)
		qsort(model->syncs.data, model->syncs.len, sizeof(struct nps_sync), by_stream_and_cover);
}

/* The first that is not before KEY's stream, or with AFTER the first that is behind it. */
static const struct nps_sync *edge(const struct nps_session *model, const struct nps_sync *key, bool after)
{
	const struct nps_sync *syncs = model->syncs.data;
	size_t low = 0, high = model->syncs.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (by_stream(&syncs[mid], key) < after)
			low = mid + 1;
		else
			high = mid;
	}
	return syncs + low;
}

struct nps_sync_walk nps_syncs__of(const struct nps_session *model, uint32_t proc, uint16_t device,
				   uint16_t stream)
{
	const struct nps_sync own = { .proc = proc, .device = device, .stream = stream },
			      whole = { .proc = proc, .device = device, .stream = UINT16_MAX };
	struct nps_sync_walk walk = { 0 };

	if (!model->syncs.len)
		return walk;
	walk.whole = edge(model, &whole, false);
	walk.whole_end = edge(model, &whole, true);
	if (stream == UINT16_MAX)
		return walk;
	walk.own = edge(model, &own, false);
	walk.own_end = edge(model, &own, true);
	return walk;
}

const struct nps_sync *nps_syncs__next(struct nps_sync_walk *walk)
{
	if (walk->own == walk->own_end)
		return walk->whole == walk->whole_end ? NULL : walk->whole++;
	if (walk->whole == walk->whole_end || walk->own->cover <= walk->whole->cover)
		return walk->own++;
	return walk->whole++;
}
