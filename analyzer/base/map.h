/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash map from 64 bits to 32 bits (open addressing) and a stable radix sort. */
#ifndef NPS_MAP_H
#define NPS_MAP_H

#include "base/util.h"

#include <stdbool.h>

struct nps_map {
	struct nps_map_slot {
		uint64_t key;
		uint32_t value;
		uint32_t used;
	} * slots;
	size_t size, len;
};

/* A random number of this process, unknown to the author of its input. The order of slots depends on it. */
uint64_t nps_map__seed(void);

/* The value of KEY, or NPS_NONE. */
uint32_t nps_map__get(const struct nps_map *map, uint64_t key);

/* Sets KEY to VALUE. 0 or -ENOMEM. */
int nps_map__put(struct nps_map *map, uint64_t key, uint32_t value);

/* Forgets all keys, keeps the memory. */
void nps_map__clear(struct nps_map *map);

void nps_map__free(struct nps_map *map);

struct nps_key {
	uint64_t key;
	uint32_t row;
	uint32_t group;
};

/*
 * Sorts KEYS by key, ascending and stable, with a radix sort that skips the bytes in which
 * all keys agree: times of one session differ in their lower 40 bits only.
 * TMP has room for N keys.
 */
void nps_sort_keys(struct nps_key *keys, struct nps_key *tmp, size_t n);

/* The same by group. */
void nps_sort_groups(struct nps_key *keys, struct nps_key *tmp, size_t n);

#endif
