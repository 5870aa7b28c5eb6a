/* SPDX-License-Identifier: BSD-2-Clause */
/* Which segments of a sequence are equal, and which are similar. */
#include "derive/period_search.h"

#include "base/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NEAR_SHORTEST 8 /* launches of a segment that can be similar to another one */
#define BUDGET 2000000 /* comparisons of segments in all */

int nps_period_kinds__init(struct nps_period_kinds *kinds, int dirfd, const struct nps_period_text *text,
			   size_t segments)
{
	size_t size = 16;
	int err;

	*kinds = (struct nps_period_kinds){ .text = text, .budget = BUDGET };
	nps_vec__init(&kinds->slots, dirfd, sizeof(struct nps_period_kind));
	nps_vec__init(&kinds->used, dirfd, sizeof(uint32_t));
	while (size < 2 * segments)
		size *= 2;
	err = nps_vec__resize(&kinds->slots, size);
	return err ? err : nps_vec__resize(&kinds->used, segments);
}

/* The slot of HASH and LEN, or the free one where it would be. */
static struct nps_period_kind *slot_at(struct nps_period_kinds *kinds, uint64_t hash, uint32_t len)
{
	struct nps_period_kind *slots = kinds->slots.data;
	size_t mask = kinds->slots.len - 1, i = nps_hash2(hash, len) & mask;

	while (slots[i].stamp == kinds->stamp && (slots[i].hash != hash || slots[i].len != len))
		i = (i + 1) & mask;
	return &slots[i];
}

/* Keeps the kinds with the most launches, the first ones of equals. */
static void top_insert(struct nps_period_kinds *kinds, uint32_t slot)
{
	const struct nps_period_kind *slots = kinds->slots.data;
	uint64_t launches = (uint64_t)slots[slot].count * slots[slot].len;
	uint32_t at = kinds->ntop;

	while (at) {
		const struct nps_period_kind *before = &slots[kinds->top[at - 1]];

		if ((uint64_t)before->count * before->len >= launches)
			break;
		at--;
	}
	if (at == NPS_KINDS_TOP)
		return;
	kinds->ntop = NPS_MIN(kinds->ntop + 1, (uint32_t)NPS_KINDS_TOP);
	memmove(&kinds->top[at + 1], &kinds->top[at], (kinds->ntop - 1 - at) * sizeof(*kinds->top));
	kinds->top[at] = slot;
}

void nps_period_kinds__count(struct nps_period_kinds *kinds, const uint32_t *bounds, size_t count)
{
	struct nps_period_kind *slots = kinds->slots.data;
	uint32_t *used = kinds->used.data;

	kinds->stamp++;
	kinds->used.len = 0;
	kinds->ntop = 0;
	kinds->covered = kinds->distinct = 0;
	kinds->bits = 0;
	for (size_t i = 0; i + 1 < count; i++) {
		uint64_t hash = nps_period_text__hash(kinds->text, bounds[i], bounds[i + 1]);
		uint32_t len = bounds[i + 1] - bounds[i];
		struct nps_period_kind *kind = slot_at(kinds, hash, len);

		if (kind->stamp == kinds->stamp) {
			kind->count++;
			continue;
		}
		*kind = (struct nps_period_kind){ .hash = hash,
						  .start = bounds[i],
						  .len = len,
						  .count = 1,
						  .segment = i,
						  .stamp = kinds->stamp };
		used[kinds->used.len++] = kind - slots;
	}
	for (size_t i = 0; i < kinds->used.len; i++) {
		const struct nps_period_kind *kind = &slots[used[i]];

		if (kind->count < NPS_KIND_MIN)
			continue;
		kinds->covered += (uint64_t)kind->count * kind->len;
		kinds->distinct += kind->len;
		kinds->bits += kind->count * log2((double)(count - 1) / kind->count);
		top_insert(kinds, used[i]);
	}
}

struct nps_period_kind *nps_period_kinds__find(struct nps_period_kinds *kinds, size_t from, size_t to)
{
	struct nps_period_kind *kind =
		slot_at(kinds, nps_period_text__hash(kinds->text, from, to), to - from);

	return kind->stamp == kinds->stamp && kind->count >= NPS_KIND_MIN ? kind : NULL;
}

struct nps_period_kind *nps_period_kinds__top(struct nps_period_kinds *kinds, uint32_t i)
{
	return &NPS_AT(&kinds->slots, struct nps_period_kind, kinds->top[i]);
}

struct nps_period_kind *nps_period_kinds__similar(struct nps_period_kinds *kinds, size_t from, size_t to,
						  size_t *same)
{
	struct nps_period_kind *best = NULL;

	*same = 0;
	for (uint32_t i = 0; to - from >= NEAR_SHORTEST && i < kinds->ntop; i++) {
		struct nps_period_kind *kind = nps_period_kinds__top(kinds, i);
		size_t most = NPS_MIN(to - from, (size_t)kind->len), equal;

		if (!kinds->budget || most <= *same || most < NPS_NEAR_MIN * kind->len)
			continue;
		kinds->budget--;
		equal = nps_period_text__same_after(kinds->text, from, kind->start, most);
		equal += nps_period_text__same_before(kinds->text, to, kind->start + kind->len, most - equal);
		if (equal <= *same || equal < NPS_NEAR_MIN * kind->len)
			continue;
		*same = equal;
		best = kind;
	}
	return best;
}

void nps_period_kinds__free(struct nps_period_kinds *kinds)
{
	nps_vec__free(&kinds->slots);
	nps_vec__free(&kinds->used);
}
