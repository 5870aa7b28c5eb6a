/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From running numbers (connections, correlations, sequence numbers) to rows. Such numbers are dense, so
 * the index is an array that is filled and read nearly in order and can leave memory in between; numbers
 * that are not dense go to a hash map.
 */
#ifndef NPS_INDEX_H
#define NPS_INDEX_H

#include "base/map.h"
#include "base/vec.h"

struct nps_index {
	uint64_t low; /* smallest key */
	bool sparse;
	struct nps_vec dense; /* uint32_t: the value + 1; 0: none */
	struct nps_map map;
};

/* An empty index for about COUNT keys in [LOW, HIGH]. */
void nps_index__init(struct nps_index *index, int dirfd, uint64_t low, uint64_t high, uint64_t count);

/* Sets KEY, which lies in [LOW, HIGH], to VALUE. 0 or negative errno. */
int nps_index__put(struct nps_index *index, uint64_t key, uint32_t value);

/* The value of any KEY, or NPS_NONE. */
uint32_t nps_index__get(const struct nps_index *index, uint64_t key);

/* Releases the memory of what was read; later reads load it again. */
void nps_index__cool(const struct nps_index *index);
void nps_index__free(struct nps_index *index);

#endif
