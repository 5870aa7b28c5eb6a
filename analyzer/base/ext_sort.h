/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sorts any number of fixed-size records in bounded memory. Records begin with a struct nps_sort_key. They
 * are gathered in a chunk, each full chunk becomes a sorted run in an unlinked temporary file, and the runs
 * are merged while the result is read. Chunks that come in order already cost no sort, and a chunk that
 * continues the last run makes no new one. Stable: records with the same key keep the order in which they
 * were added.
 */
#ifndef NPS_EXT_SORT_H
#define NPS_EXT_SORT_H

#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Compared as one 128-bit number. */
struct nps_sort_key {
	uint64_t high, low;
};

struct nps_ext_sort {
	int err; /* of add, finish and next: 0 or negative errno */
	int dirfd, fd;
	size_t elem, chunk_rows, rows; /* rows: in the chunk */
	uint64_t total; /* records that were added */
	uint8_t *chunk;
	struct nps_key *order, *spare; /* of the chunk */
	size_t bytes; /* mapped for the three, then for the buffers of the merge */
	off_t end; /* of the file */
	struct nps_sort_run {
		off_t at, end;
	} * runs;
	size_t nruns, room;
	struct nps_sort_key last; /* of the latest run */

	struct nps_sort_source {
		uint8_t *buffer;
		size_t used, len;
	} * sources;
	struct nps_sort_head {
		struct nps_sort_key key;
		uint32_t run;
	} * heap;
	size_t nheap, buffer_bytes;
	uint8_t *buffers;
	size_t next;
	bool merging, started;
};

/* Nothing is allocated before the first record. ELEM: bytes of a record. DIRFD: of the file; not owned. */
void nps_ext_sort__init(struct nps_ext_sort *sort, int dirfd, size_t elem);

/* Room for a record, which the caller fills before the next call. NULL: see sort->err. */
void *nps_ext_sort__add(struct nps_ext_sort *sort);

/* No more records will be added. 0 or negative errno. */
int nps_ext_sort__finish(struct nps_ext_sort *sort);

/* The next record in order, valid until the next call; NULL at the end or on an error, see sort->err. */
const void *nps_ext_sort__next(struct nps_ext_sort *sort);

void nps_ext_sort__free(struct nps_ext_sort *sort);

static inline bool nps_sort_key__less(struct nps_sort_key a, struct nps_sort_key b)
{
	return a.high < b.high || (a.high == b.high && a.low < b.low);
}

#endif
