/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/string_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 1024 /* bytes of a text, before cleaning */
#define FIRST_SLOTS 1024
#define SLOTS_HOT (1U << 16) /* that stay in memory as the table grows */
#define LOOKUPS 256 /* after which the pages that they used are released: most texts are looked up once */

struct slot {
	uint32_t hash; /* lower half of that of the text */
	uint32_t text; /* its id + 1; 0: free */
};

void nps_strings__init(struct nps_strings *strings, int dirfd)
{
	nps_vec__init(&strings->text, dirfd, 1);
	nps_vec__init(&strings->at, dirfd, sizeof(uint64_t));
	nps_vec__init(&strings->slots, dirfd, sizeof(struct slot));
	strings->used = strings->lookups = 0;
}

const char *nps_strings__get(const struct nps_strings *strings, uint32_t id)
{
	if (id >= strings->at.len)
		return "";
	return (const char *)strings->text.data + NPS_AT(&strings->at, uint64_t, id);
}

static uint32_t strings_append(struct nps_strings *strings, const char *text, size_t len)
{
	size_t start = strings->text.len;
	uint64_t *at;

	if (strings->at.len >= NPS_NONE - 1 || nps_vec__resize(&strings->text, start + len + 1))
		return NPS_NONE;
	at = nps_vec__push(&strings->at);
	if (!at)
		return NPS_NONE;
	*at = start;
	memcpy((char *)strings->text.data + start, text, len + 1);
	return strings->at.len - 1;
}

/* The slot that has TEXT, or the free one where it belongs. */
static struct slot *strings_find_slot(const struct nps_strings *strings, uint32_t hash, const char *text)
{
	struct slot *slots = strings->slots.data;
	size_t mask = strings->slots.len - 1, i = hash & mask;

	while (slots[i].text &&
	       (slots[i].hash != hash || strcmp(nps_strings__get(strings, slots[i].text - 1), text) != 0))
		i = (i + 1) & mask;
	return &slots[i];
}

/* Doubles the slots. Their hashes are enough, the texts are not read. */
static int strings_grow(struct nps_strings *strings)
{
	const struct slot *slots = strings->slots.data;
	struct nps_vec bigger;
	struct slot *to;
	size_t mask;
	int err;

	nps_vec__init(&bigger, strings->slots.dirfd, sizeof(struct slot));
	bigger.len = NPS_MAX(strings->slots.len * 2, (size_t)FIRST_SLOTS);
	err = nps_vec__reserve(&bigger, bigger.len); /* new pages are zero */
	if (err)
		return err;
	to = bigger.data;
	mask = bigger.len - 1;
	for (size_t i = 0; i < strings->slots.len; i++) {
		size_t at = slots[i].hash & mask;

		if (!(i % SLOTS_HOT)) {
			nps_vec__cool(&strings->slots);
			nps_vec__cool(&bigger);
		}
		if (!slots[i].text)
			continue;
		while (to[at].text)
			at = (at + 1) & mask;
		to[at] = slots[i];
	}
	nps_vec__free(&strings->slots);
	strings->slots = bigger;
	return 0;
}

static struct slot *strings_lookup(struct nps_strings *strings, uint32_t hash, const char *text)
{
	if (strings->used * 3 >= strings->slots.len * 2 && strings_grow(strings))
		return NULL;
	if (!(++strings->lookups % LOOKUPS))
		nps_strings__cool(strings);
	return strings_find_slot(strings, hash, text);
}

uint32_t nps_strings__add(struct nps_strings *strings, const char *text, size_t len)
{
	char clean[3 * LONGEST + 1];
	struct slot *slot;
	uint32_t hash, id;

	len = nps_utf8_clean(clean, text, NPS_MIN(len, (size_t)LONGEST));
	hash = nps_hash_bytes(clean, len);
	slot = strings_lookup(strings, hash, clean);
	if (!slot)
		return NPS_NONE;
	if (slot->text)
		return slot->text - 1;
	id = strings_append(strings, clean, len);
	if (id == NPS_NONE)
		return NPS_NONE;
	*slot = (struct slot){ hash, id + 1 };
	strings->used++;
	return id;
}

uint32_t nps_strings__append_new(struct nps_strings *strings, const char *text, size_t len)
{
	size_t start = strings->text.len;
	struct slot *slot;
	uint64_t *at;
	uint32_t hash;
	char *to;

	/* Cleaning makes it three times as long at most. */
	if (strings->at.len >= NPS_NONE - 1 || nps_vec__resize(&strings->text, start + 3 * len + 1))
		return NPS_NONE;
	to = (char *)strings->text.data + start;
	len = nps_utf8_clean(to, text, len);
	strings->text.len = start + len + 1;
	at = nps_vec__push(&strings->at);
	if (!at)
		return NPS_NONE;
	*at = start;
	if (len > LONGEST)
		return strings->at.len - 1;
	hash = nps_hash_bytes(to, len);
	slot = strings_lookup(strings, hash, to);
	if (!slot)
		return NPS_NONE;
	if (!slot->text) {
		*slot = (struct slot){ hash, strings->at.len };
		strings->used++;
	}
	return strings->at.len - 1;
}

uint32_t nps_strings__addz(struct nps_strings *strings, const char *text)
{
	return nps_strings__add(strings, text, strlen(text));
}

uint32_t nps_strings__addf(struct nps_strings *strings, const char *fmt, ...)
{
	char text[LONGEST];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return nps_strings__addz(strings, text);
}

void nps_strings__cool(const struct nps_strings *strings)
{
	nps_vec__cool(&strings->text);
	nps_vec__cool(&strings->at);
	nps_vec__cool(&strings->slots);
}

int nps_strings__own(struct nps_strings *strings)
{
	int err = nps_vec__own(&strings->text);

	if (err)
		return err;
	err = nps_vec__own(&strings->at);
	return err ? err : nps_vec__own(&strings->slots);
}

void nps_strings__free(struct nps_strings *strings)
{
	nps_vec__free(&strings->text);
	nps_vec__free(&strings->at);
	nps_vec__free(&strings->slots);
	strings->used = 0;
}
