/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/common/memo.h"

#include <string.h>

#define ENTRIES (1UL << 18)
#define BYTES (32UL << 20)
#define SHORT 1024 /* bytes up to which the model's texts are found again */

struct memo_entry {
	uint64_t at;
	uint32_t len, value;
};

void nps_fw_memo__init(struct nps_fw_memo *memo, int dirfd)
{
	*memo = (struct nps_fw_memo){ 0 };
	nps_vec__init(&memo->bytes, dirfd, 1);
	nps_vec__init(&memo->entries, dirfd, sizeof(struct memo_entry));
}

void nps_fw_memo__free(struct nps_fw_memo *memo)
{
	nps_vec__free(&memo->bytes);
	nps_vec__free(&memo->entries);
	nps_map__free(&memo->by_hash);
}

/* Eight bytes at a time: stacks are long. */
static uint64_t memo_hash(const uint8_t *p, size_t len)
{
	uint64_t hash = len, part;

	for (; len >= sizeof(part); p += sizeof(part), len -= sizeof(part)) {
		memcpy(&part, p, sizeof(part));
		hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	part = 0;
	if (len)
		memcpy(&part, p, len);
	return nps_hash2(hash, part);
}

static struct memo_entry *entry_at(const struct nps_fw_memo *memo, size_t i)
{
	return &NPS_AT(&memo->entries, struct memo_entry, i);
}

static uint32_t *memo_add(struct nps_fw_memo *memo, uint64_t hash, const void *text, size_t len)
{
	size_t at = memo->bytes.len;
	struct memo_entry *entry;

	if (nps_vec__resize(&memo->bytes, at + len))
		return NULL;
	entry = nps_vec__push(&memo->entries);
	if (!entry || nps_map__put(&memo->by_hash, hash, memo->entries.len - 1))
		return NULL;
	if (len)
		memcpy((char *)memo->bytes.data + at, text, len);
	*entry = (struct memo_entry){ at, len, NPS_NONE };
	return &entry->value;
}

uint32_t *nps_fw_memo__at(struct nps_fw_memo *memo, const void *text, size_t len)
{
	uint64_t hash = memo_hash(text, len);
	uint32_t i;

	if (memo->entries.len >= ENTRIES || memo->bytes.len >= BYTES) {
		memo->entries.len = memo->bytes.len = 0;
		nps_map__clear(&memo->by_hash);
	}
	for (; (i = nps_map__get(&memo->by_hash, hash)) != NPS_NONE; hash++) {
		struct memo_entry *entry = entry_at(memo, i);

		if (entry->len == len && (!len || !memcmp((char *)memo->bytes.data + entry->at, text, len)))
			return &entry->value;
	}
	return memo_add(memo, hash, text, len);
}

uint32_t nps_fw_intern(struct nps_strings *strings, const char *text, size_t len)
{
	return len <= SHORT ? nps_strings__add(strings, text, len)
			    : nps_strings__append_new(strings, text, len);
}

uint32_t nps_fw_memo__text(struct nps_fw_memo *memo, struct nps_strings *strings, const char *text,
			   size_t len)
{
	uint32_t *id = nps_fw_memo__at(memo, text, len);

	if (id && *id == NPS_NONE)
		*id = nps_fw_intern(strings, text, len);
	return id ? *id : NPS_NONE;
}
