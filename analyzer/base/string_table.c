/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/string_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 1024 /* bytes of a text, before cleaning */

void nps_strings__init(struct nps_strings *strings, int dirfd)
{
	nps_vec__init(&strings->text, dirfd, 1);
	nps_vec__init(&strings->at, dirfd, sizeof(uint64_t));
	strings->by_hash = (struct nps_map){ 0 };
}

const char *nps_strings__get(const struct nps_strings *strings, uint32_t id)
{
	if (id >= strings->at.len)
		return "";
	return (const char *)strings->text.data + NPS_AT(&strings->at, uint64_t, id);
}

static uint32_t append(struct nps_strings *strings, const char *text, size_t len)
{
	size_t start = strings->text.len;
	uint64_t *at;

	if (strings->at.len >= NPS_NONE || nps_vec__resize(&strings->text, start + len + 1))
		return NPS_NONE;
	at = nps_vec__push(&strings->at);
	if (!at)
		return NPS_NONE;
	*at = start;
	memcpy((char *)strings->text.data + start, text, len + 1);
	return strings->at.len - 1;
}

uint32_t nps_strings__add(struct nps_strings *strings, const char *text, size_t len)
{
	char clean[3 * LONGEST + 1];
	uint64_t hash;
	uint32_t id;

	len = nps_utf8_clean(clean, text, NPS_MIN(len, (size_t)LONGEST));
	hash = nps_hash_bytes(clean, len);
	/* A different text with the same hash takes the next free hash value. */
	while ((id = nps_map__get(&strings->by_hash, hash)) != NPS_NONE) {
		if (!strcmp(nps_strings__get(strings, id), clean))
			return id;
		hash++;
	}
	id = append(strings, clean, len);
	if (id == NPS_NONE || nps_map__put(&strings->by_hash, hash, id))
		return NPS_NONE;
	return id;
}

uint32_t nps_strings__append_new(struct nps_strings *strings, const char *text, size_t len)
{
	size_t start = strings->text.len;
	uint64_t *at, hash;
	char *to;

	/* Cleaning makes it three times as long at most. */
	if (strings->at.len >= NPS_NONE || nps_vec__resize(&strings->text, start + 3 * len + 1))
		return NPS_NONE;
	to = (char *)strings->text.data + start;
	len = nps_utf8_clean(to, text, len);
	strings->text.len = start + len + 1;
	at = nps_vec__push(&strings->at);
	if (!at)
		return NPS_NONE;
	*at = start;
	hash = nps_hash_bytes(to, len);
	if (len <= LONGEST && nps_map__get(&strings->by_hash, hash) == NPS_NONE &&
	    nps_map__put(&strings->by_hash, hash, strings->at.len - 1))
		return NPS_NONE;
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

int nps_strings__own(struct nps_strings *strings)
{
	int err = nps_vec__own(&strings->text);

	return err ? err : nps_vec__own(&strings->at);
}

void nps_strings__free(struct nps_strings *strings)
{
	nps_vec__free(&strings->text);
	nps_vec__free(&strings->at);
	nps_map__free(&strings->by_hash);
}
