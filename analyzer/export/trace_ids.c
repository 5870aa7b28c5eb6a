/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/trace_ids.h"

#include <errno.h>
#include <stdlib.h>

#define PAGES (1U << (32 - NPS_TRACE_PAGE))
#define SPARE (1U << 20) /* ids that a range may have over what its count justifies */
#define COOL (1U << 18) /* look-ups after which pages leave the resident set */

int nps_trace_bits__set(struct nps_trace_bits *bits, uint32_t id)
{
	uint64_t **page;

	if (!bits->pages)
		bits->pages = calloc(PAGES, sizeof(*bits->pages));
	if (!bits->pages)
		return -ENOMEM;
	page = &bits->pages[id >> NPS_TRACE_PAGE];
	if (!*page)
		*page = calloc(1U << (NPS_TRACE_PAGE - 6), sizeof(**page));
	if (!*page)
		return -ENOMEM;
	(*page)[id >> 6 & ((1U << (NPS_TRACE_PAGE - 6)) - 1)] |= 1ULL << (id & 63);
	return 0;
}

void nps_trace_bits__free(struct nps_trace_bits *bits)
{
	for (size_t i = 0; bits->pages && i < PAGES; i++)
		free(bits->pages[i]);
	free(bits->pages);
	bits->pages = NULL;
}

int nps_trace_rows__init(struct nps_trace_rows *map, int dirfd, uint64_t first, uint64_t last, size_t count)
{
	*map = (struct nps_trace_rows){ .first = first };
	nps_vec__init(&map->rows, dirfd, sizeof(uint32_t));
	if (last < first)
		return 0;
	return nps_vec__resize(&map->rows, NPS_MIN(last - first, 16 * (uint64_t)count + SPARE) + 1);
}

static void pace(struct nps_trace_rows *map)
{
	if (!(++map->steps & (COOL - 1)))
		nps_vec__cool(&map->rows);
}

void nps_trace_rows__put(struct nps_trace_rows *map, uint64_t id, uint32_t row)
{
	if (id < map->first || id - map->first >= map->rows.len)
		return;
	NPS_AT(&map->rows, uint32_t, id - map->first) = row + 1;
	pace(map);
}

uint32_t nps_trace_rows__get(struct nps_trace_rows *map, uint64_t id)
{
	if (id < map->first || id - map->first >= map->rows.len)
		return NPS_NONE;
	pace(map);
	return NPS_AT(&map->rows, uint32_t, id - map->first) - 1;
}

void nps_trace_rows__free(struct nps_trace_rows *map)
{
	if (map->rows.elem) /* else it was never made */
		nps_vec__free(&map->rows);
}

void nps_trace_lanes__init(struct nps_trace_lanes *lanes, int dirfd)
{
	*lanes = (struct nps_trace_lanes){ 0 };
	nps_vec__init(&lanes->list, dirfd, sizeof(struct nps_trace_lane));
}

int nps_trace_lanes__add(struct nps_trace_lanes *lanes, uint32_t device, uint32_t tid)
{
	uint64_t key = (uint64_t)device << 32 | tid;
	struct nps_trace_lane *lane;

	if (lanes->last == key + 1)
		return 0;
	lanes->last = key + 1;
	if (nps_map__get(&lanes->seen, key) != NPS_NONE)
		return 0;
	lane = nps_vec__push(&lanes->list);
	if (!lane)
		return -errno;
	*lane = (struct nps_trace_lane){ device, tid };
	return nps_map__put(&lanes->seen, key, 1);
}

void nps_trace_lanes__free(struct nps_trace_lanes *lanes)
{
	nps_vec__free(&lanes->list);
	nps_map__free(&lanes->seen);
}
