/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the chunk files and session.json of a session directory (docs/session-format.md). */
#ifndef NPS_SESSION_READER_H
#define NPS_SESSION_READER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "event.h"
#include "session.h"

struct cJSON;

/* Why the reading of a chunk file ended. */
enum nps_chunks_end {
	NPS_CHUNKS_COMPLETE = 0,
	NPS_CHUNKS_CUT, /* ends inside a chunk: an unfinished write */
	NPS_CHUNKS_DAMAGED, /* magic, length, sequence or checksum is wrong */
	NPS_CHUNKS_VERSION, /* written by another version */
	NPS_CHUNKS_MISSING,
	NPS_CHUNKS_UNREADABLE, /* or the rest of it: which has been reported */
};

struct nps_chunks {
	enum nps_chunks_end end;
	uint64_t chunks; /* good ones */
	uint64_t unknown; /* of them, of types that this version does not know: left out */
	uint64_t bytes; /* of the file that were good */
	unsigned int version; /* the strange one, for NPS_CHUNKS_VERSION */
};

/* One good chunk; a negative return ends the reading with that error. */
typedef int (*nps_chunk_fn)(void *ctx, const struct nps_chunk *chunk, const void *payload);

/*
 * Walks the chunks of NAME in directory DIRFD up to the first bad one. 0 or a negative errno of
 * the callback or of reading; how far it got is in RESULT.
 */
int nps_chunks__read(int dirfd, const char *name, nps_chunk_fn fn, void *ctx, struct nps_chunks *result);

/*
 * Parses session.json. Integers of more than 15 digits become strings, because cJSON keeps
 * numbers as doubles; nps_json_u64() reads both. NULL with errno: ENOENT, EFBIG, EILSEQ
 * (no JSON) or of reading. The caller frees with cJSON_Delete().
 */
struct cJSON *nps_session__json(int dirfd, const char *name);

/* Member NAME of OBJECT as a number, DEF if it is absent, negative or no integer. */
uint64_t nps_json_u64(const struct cJSON *object, const char *name, uint64_t def);
/* The same, and returns whether it was there. */
bool nps_json_has_u64(const struct cJSON *object, const char *name, uint64_t *value);
const char *nps_json_str(const struct cJSON *object, const char *name, const char *def);

#endif
