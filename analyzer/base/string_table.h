/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interned texts of the model. All texts are valid UTF-8 without NUL. Names of collectives are nearly
 * unique, so there may be as many texts as a table has rows: texts and their hash table are in files, as
 * tables are.
 */
#ifndef NPS_STRING_TABLE_H
#define NPS_STRING_TABLE_H

#include "base/util.h"
#include "base/vec.h"

struct nps_strings {
	struct nps_vec text; /* bytes, each text terminated */
	struct nps_vec at; /* uint64_t: where text i starts */
	struct nps_vec slots; /* struct slot: a hash table of open addressing, 2^n slots */
	size_t used; /* slots */
	uint32_t lookups;
};

void nps_strings__init(struct nps_strings *strings, int dirfd);

/* The id of the text (cleaned to UTF-8), NPS_NONE if there is no memory. */
uint32_t nps_strings__add(struct nps_strings *strings, const char *text, size_t len);
uint32_t nps_strings__addz(struct nps_strings *strings, const char *text);
uint32_t nps_strings__addf(struct nps_strings *strings, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * A text of any length that gets an id of its own even if it is there already: a database may number
 * one text several times. nps_strings__add() finds it only if it was the first and is not long.
 */
uint32_t nps_strings__append_new(struct nps_strings *strings, const char *text, size_t len);

/* The text, "" for NPS_NONE; valid until the next add. */
const char *nps_strings__get(const struct nps_strings *strings, uint32_t id);

/* Texts leave the resident set until they are needed again. */
void nps_strings__cool(const struct nps_strings *strings);

/*
 * Texts added from now on are this process' alone, as after fork(). The other process adds none as long as
 * this one lives: its slots would show here where nothing was changed yet. 0 or negative errno.
 */
int nps_strings__own(struct nps_strings *strings);

void nps_strings__free(struct nps_strings *strings);

#endif
