/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/csv_op_memory.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t block_key(const struct nps_model *m, size_t row)
{
	return nps_hash2(m->npu_op_mem.address[row], m->npu_op_mem.device[row]);
}

static int by_row(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* What is left in LIVE, in order of allocation. */
static int leftovers(const struct nps_map *live, void (*each)(void *ctx, uint32_t, uint32_t), void *ctx)
{
	uint32_t *rows = malloc(live->len * sizeof(*rows) + 1);
	size_t n = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < live->size; i++)
		if (live->slots[i].used && live->slots[i].value != NPS_NONE)
			rows[n++] = live->slots[i].value;
	qsort(rows, n, sizeof(*rows), by_row);
	for (size_t i = 0; i < n; i++)
		each(ctx, rows[i], NPS_NONE);
	free(rows);
	return 0;
}

int nps_op_memory__pairs(const struct nps_model *m, void (*each)(void *ctx, uint32_t, uint32_t), void *ctx)
{
	struct nps_pace pace = { .model = m };
	struct nps_map live = { 0 }; /* address -> row of its allocation; allocators use addresses again */
	int err = 0;

	for (size_t i = 0; !err && i < m->npu_op_mem.t.len; i++) {
		uint64_t key = block_key(m, i);

		nps_pace__step(&pace);
		if (!strcmp(nps_model__text(m, m->npu_op_mem.type[i]), "release")) {
			uint32_t row = nps_map__get(&live, key);

			if (row == NPS_NONE) /* allocated before the capture */
				continue;
			each(ctx, row, i);
			err = nps_map__put(&live, key, NPS_NONE);
		} else {
			err = nps_map__put(&live, key, i);
		}
	}
	err = err ? err : leftovers(&live, each, ctx);
	nps_map__free(&live);
	return err;
}
