/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/index.h"

#define SPREAD 8 /* array cells for each key before a map is smaller */
#define FEW 4096 /* keys for which nobody counts */

void nps_index__init(struct nps_index *index, int dirfd, uint64_t low, uint64_t high, uint64_t count)
{
	*index = (struct nps_index){ .low = low };
	nps_vec__init(&index->dense, dirfd, sizeof(uint32_t));
	index->sparse = high >= low && (high - low) / SPREAD > NPS_MAX(count, (uint64_t)FEW);
}

int nps_index__put(struct nps_index *index, uint64_t key, uint32_t value)
{
	uint64_t at = key - index->low;
	int err;

	if (index->sparse)
		return nps_map__put(&index->map, key, value);
	if (at >= index->dense.len) {
		err = nps_vec__resize(&index->dense, at + 1);
		if (err)
			return err;
	}
	NPS_AT(&index->dense, uint32_t, at) = value + 1;
	return 0;
}

uint32_t nps_index__get(const struct nps_index *index, uint64_t key)
{
	uint64_t at = key - index->low;

	if (index->sparse)
		return nps_map__get(&index->map, key);
	return at < index->dense.len ? NPS_AT(&index->dense, uint32_t, at) - 1 : NPS_NONE;
}

void nps_index__cool(const struct nps_index *index)
{
	nps_vec__cool(&index->dense);
}

void nps_index__free(struct nps_index *index)
{
	nps_vec__free(&index->dense);
	nps_map__free(&index->map);
}
