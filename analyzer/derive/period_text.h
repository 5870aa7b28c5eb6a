/* SPDX-License-Identifier: BSD-2-Clause */
/* A sequence of symbols whose parts are compared by hashes, in constant or logarithmic time. */
#ifndef NPS_PERIOD_TEXT_H
#define NPS_PERIOD_TEXT_H

#include "base/vec.h"

#include <stdint.h>

struct nps_period_text {
	const uint32_t *symbols; /* not owned */
	size_t len;
	struct nps_vec prefix, power; /* uint64_t: hash of the first i symbols; the base to the i */
};

/* Large arrays go to files in DIRFD. 0 or -ENOMEM; nps_period_text__free() in any case. */
int nps_period_text__init(struct nps_period_text *text, int dirfd, const uint32_t *symbols, size_t len);

/* Hash of the symbols from FROM up to, not including, TO. */
uint64_t nps_period_text__hash(const struct nps_period_text *text, size_t from, size_t to);

/* How many symbols from A on are those from B on, at most MAX. */
size_t nps_period_text__same_after(const struct nps_period_text *text, size_t a, size_t b, size_t max);

/* How many symbols before A are those before B, at most MAX. */
size_t nps_period_text__same_before(const struct nps_period_text *text, size_t a, size_t b, size_t max);

void nps_period_text__free(struct nps_period_text *text);

#endif
