/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/batches.h"

#include <errno.h>

#define STREAMS_MOST (1U << 16)
#define RECENT 64 /* tasks of a stream that a flip may still move: as many threads may race */
#define DESTROYED 65535 /* number of a flip that ends a stream */
#define TOP_IDS 0xFF00 /* ids that a batch ends with */

struct batch_stream {
	uint32_t batch, destroyed;
	uint32_t rows[RECENT];
	uint16_t ids[RECENT];
	uint32_t n; /* tasks so far */
};

void nps_batches__init(struct nps_batches *batches, int dirfd, uint32_t *(*batch_of)(void *arg, uint32_t row),
		       void *arg)
{
	*batches = (struct nps_batches){ .batch_of = batch_of, .arg = arg };
	nps_vec__init(&batches->streams, dirfd, sizeof(struct batch_stream));
}

void nps_batches__free(struct nps_batches *batches)
{
	nps_map__free(&batches->stream_of);
	nps_vec__free(&batches->streams);
}

/* NULL in *STREAM: there are too many to keep count. */
static int stream_find(struct nps_batches *batches, uint32_t device, uint32_t number,
		       struct batch_stream **stream)
{
	uint64_t key = (uint64_t)device << 32 | number;
	uint32_t i = nps_map__get(&batches->stream_of, key);

	*stream = NULL;
	if (i == NPS_NONE) {
		if (batches->streams.len == STREAMS_MOST)
			return 0;
		i = batches->streams.len;
		if (!nps_vec__push(&batches->streams) || nps_map__put(&batches->stream_of, key, i))
			return -ENOMEM;
	}
	*stream = &NPS_AT(&batches->streams, struct batch_stream, i);
	return 0;
}

int nps_batches__task(struct nps_batches *batches, uint32_t device, uint32_t stream, uint16_t id,
		      uint32_t row)
{
	struct batch_stream *to;
	int err = stream_find(batches, device, stream, &to);

	if (err || !to)
		return err;
	*batches->batch_of(batches->arg, row) = to->batch;
	to->ids[to->n % RECENT] = id;
	to->rows[to->n++ % RECENT] = row;
	return 0;
}

/*
 * Threads race for ids: tasks reported before the flip may already be of the new batch, and the last tasks
 * of the old batch may be among them.
 */
int nps_batches__flip(struct nps_batches *batches, uint32_t device, uint32_t stream, uint32_t number,
		      uint32_t first)
{
	struct batch_stream *of;
	int err = stream_find(batches, device, stream, &of);
	uint32_t old;

	if (err || !of)
		return err;
	old = of->batch++;
	if (number == DESTROYED) {
		of->destroyed++;
		return 0;
	}
	/* Flips before the first one that is left may be lost. */
	of->batch = NPS_MAX(of->batch, number + of->destroyed);
	for (uint32_t back = 1; back <= NPS_MIN(of->n, (uint32_t)RECENT); back++) {
		uint32_t at = (of->n - back) % RECENT;
		uint32_t *batch = batches->batch_of(batches->arg, of->rows[at]);

		if (*batch != old || (of->ids[at] >= first && of->ids[at] < TOP_IDS))
			break;
		if (of->ids[at] < first)
			*batch = of->batch;
	}
	return 0;
}
