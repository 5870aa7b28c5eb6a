/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/map.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Keys come from untrusted files: a random seed prevents keys that were chosen to collide. */
static uint64_t seed;

__attribute__((constructor)) static void choose_seed(void)
{
	struct timespec now;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
		return;
	clock_gettime(CLOCK_MONOTONIC,
		      &now); /* so early after the start of a system that there is nothing better */
	seed = nps_hash2((uint64_t)now.tv_nsec, (uint64_t)getpid());
}

uint64_t nps_map__seed(void)
{
	return seed;
}

static struct nps_map_slot *map_find_slot(const struct nps_map *map, uint64_t key)
{
	size_t i = nps_hash2(key ^ seed, 0x51) & (map->size - 1);

	while (map->slots[i].used && map->slots[i].key != key)
		i = (i + 1) & (map->size - 1);
	return &map->slots[i];
}

uint32_t nps_map__get(const struct nps_map *map, uint64_t key)
{
	struct nps_map_slot *slot;

	if (!map->size)
		return NPS_NONE;
	slot = map_find_slot(map, key);
	return slot->used ? slot->value : NPS_NONE;
}

static int map_grow(struct nps_map *map)
{
	struct nps_map bigger = { .size = map->size ? map->size * 2 : 64, .len = map->len };

	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return nps_memory__fail(-ENOMEM);
	for (size_t i = 0; i < map->size; i++)
		if (map->slots[i].used)
			*map_find_slot(&bigger, map->slots[i].key) = map->slots[i];
	free(map->slots);
	*map = bigger;
	return 0;
}

int nps_map__put(struct nps_map *map, uint64_t key, uint32_t value)
{
	struct nps_map_slot *slot;

	if (map->len * 3 >= map->size * 2) {
		int err = map_grow(map);

		if (err)
			return err;
	}
	slot = map_find_slot(map, key);
	if (!slot->used) {
		slot->used = 1;
		slot->key = key;
		map->len++;
	}
	slot->value = value;
	return 0;
}

void nps_map__clear(struct nps_map *map)
{
	if (map->len)
		memset(map->slots, 0, map->size * sizeof(*map->slots));
	map->len = 0;
}

void nps_map__free(struct nps_map *map)
{
	free(map->slots);
	*map = (struct nps_map){ 0 };
}

static uint64_t key_field(const struct nps_key *key, bool group)
{
	return group ? key->group : key->key;
}

static void radix(struct nps_key *keys, struct nps_key *tmp, size_t n, bool group)
{
	struct nps_key *from = keys, *to = tmp, *swap;
	uint64_t differ = 0, first;

	if (n < 2)
		return;
	first = key_field(&keys[0], group);
	for (size_t i = 1; i < n; i++)
		differ |= key_field(&keys[i], group) ^ first;
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		size_t at[256] = { 0 }, sum = 0;

		if (!(differ >> shift & 0xff))
			continue;
		for (size_t i = 0; i < n; i++)
			at[key_field(&from[i], group) >> shift & 0xff]++;
		for (size_t b = 0; b < 256; b++) {
			size_t count = at[b];

			at[b] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			to[at[key_field(&from[i], group) >> shift & 0xff]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (from != keys)
		memcpy(keys, from, n * sizeof(*keys));
}

void nps_sort_keys(struct nps_key *keys, struct nps_key *tmp, size_t n)
{
	radix(keys, tmp, n, false);
}

void nps_sort_groups(struct nps_key *keys, struct nps_key *tmp, size_t n)
{
	radix(keys, tmp, n, true);
}
