/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "slices.h"

#define SLOTS_AT_FIRST 4096

struct entry {
	uint64_t time;
	uint64_t age;
	uint32_t slot, file;
};

struct heap {
	struct entry *entries;
	uint8_t *slots;
	uint32_t *spare; /* slots in no entry */
	size_t count, room;
	uint64_t age;
};

static void grow(struct heap *h)
{
	size_t room = h->room ? h->room * 2 : SLOTS_AT_FIRST;

	h->entries = realloc(h->entries, room * sizeof(*h->entries));
	h->slots = realloc(h->slots, room * HEAP_RECORD);
	h->spare = realloc(h->spare, room * sizeof(*h->spare));
	need(h->entries && h->slots && h->spare, "device records");
	for (size_t i = h->room; i < room; i++)
		h->spare[i] = (uint32_t)i;
	h->room = room;
}

struct heap *heap_new(void)
{
	struct heap *h = calloc(1, sizeof(*h));

	need(h != NULL, "device records");
	grow(h);
	return h;
}

void heap_free(struct heap *h)
{
	free(h->entries);
	free(h->slots);
	free(h->spare);
	free(h);
}

static bool before(const struct entry *a, const struct entry *b)
{
	return a->time != b->time ? a->time < b->time : a->age < b->age;
}

uint8_t *heap_add(struct heap *h, uint64_t time, uint32_t file)
{
	struct entry e = { .time = time, .age = h->age++, .file = file };
	size_t at;

	if (h->count == h->room)
		grow(h);
	e.slot = h->spare[h->count]; /* entries and spare slots together always fill the room */
	at = h->count++;
	while (at && before(&e, &h->entries[(at - 1) / 2])) {
		h->entries[at] = h->entries[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	h->entries[at] = e;
	return h->slots + (size_t)e.slot * HEAP_RECORD;
}

uint8_t *heap_pop(struct heap *h, uint64_t until, uint32_t *file)
{
	struct entry first, last;
	size_t at = 0, child;

	if (h->count == 0 || h->entries[0].time >= until)
		return NULL;
	first = h->entries[0];
	last = h->entries[--h->count];
	while ((child = 2 * at + 1) < h->count) {
		if (child + 1 < h->count && before(&h->entries[child + 1], &h->entries[child]))
			child++;
		if (!before(&h->entries[child], &last))
			break;
		h->entries[at] = h->entries[child];
		at = child;
	}
	h->entries[at] = last;
	h->spare[h->count] = first.slot;
	*file = first.file;
	return h->slots + (size_t)first.slot * HEAP_RECORD;
}
