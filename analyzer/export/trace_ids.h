/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets and maps of the vendor's ids, which are dense as a rule, but come from files that are not trusted. */
#ifndef NPS_TRACE_IDS_H
#define NPS_TRACE_IDS_H

#include "base/map.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* A set of numbers: memory for the neighbourhoods in which there are some. */
struct nps_trace_bits {
	uint64_t **pages;
};

#define NPS_TRACE_PAGE 18 /* bits of a number that count within a page */

/* Adds ID. 0 or -ENOMEM. */
int nps_trace_bits__set(struct nps_trace_bits *bits, uint32_t id);
void nps_trace_bits__free(struct nps_trace_bits *bits);

static inline bool nps_trace_bits__has(const struct nps_trace_bits *bits, uint32_t id)
{
	const uint64_t *page = bits->pages ? bits->pages[id >> NPS_TRACE_PAGE] : NULL;

	return page && page[id >> 6 & ((1U << (NPS_TRACE_PAGE - 6)) - 1)] >> (id & 63) & 1;
}

/* Row numbers of the ids in a range, in a file that is mapped. */
struct nps_trace_rows {
	struct nps_vec rows; /* uint32_t, + 1 */
	uint64_t first;
	uint32_t steps;
};

/*
 * A map for COUNT ids from FIRST to LAST (LAST < FIRST: there are none). Where the range is much larger
 * than their number, ids at its far end are not kept. 0 or negative errno.
 */
int nps_trace_rows__init(struct nps_trace_rows *map, int dirfd, uint64_t first, uint64_t last, size_t count);
void nps_trace_rows__put(struct nps_trace_rows *map, uint64_t id, uint32_t row);
/* NPS_NONE if there is none. */
uint32_t nps_trace_rows__get(struct nps_trace_rows *map, uint64_t id);
void nps_trace_rows__free(struct nps_trace_rows *map);

/* The lanes that occur, in order of their first event. */
struct nps_trace_lanes {
	struct nps_map seen;
	struct nps_vec list; /* struct nps_trace_lane */
	uint64_t last; /* shortcut: the one that was added last, plus 1 */
};

struct nps_trace_lane {
	uint32_t device, tid;
};

void nps_trace_lanes__init(struct nps_trace_lanes *lanes, int dirfd);
int nps_trace_lanes__add(struct nps_trace_lanes *lanes, uint32_t device, uint32_t tid);
void nps_trace_lanes__free(struct nps_trace_lanes *lanes);

#endif
