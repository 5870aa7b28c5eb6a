/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of hashes and of (level, type) pairs, from the host's dictionaries (prof-raw 1.5, 2.0). */
#ifndef NPS_CANN_DICTIONARY_H
#define NPS_CANN_DICTIONARY_H

#include "base/map.h"
#include "import/cann/slices.h"

struct nps_dictionary {
	struct nps_strings *strings;
	struct nps_map hashes, types; /* -> text */
	struct nps_map numbers; /* hashes that nobody named -> their decimal digits */
};

/* Reads both dictionaries of the host's FILES. 0 or -ENOMEM. */
int nps_dictionary__read(struct nps_dictionary *dict, struct nps_model *model,
			 const struct nps_slices *files);
void nps_dictionary__free(struct nps_dictionary *dict);

/* The text of HASH, its decimal digits if it has none; NPS_NONE without memory. */
uint32_t nps_dictionary__name(struct nps_dictionary *dict, uint64_t hash);

/* The name of a type of LEVEL, its decimal number if it has none. */
uint32_t nps_dictionary__type(struct nps_dictionary *dict, uint32_t level, uint32_t type);

/* Is HASH in the dictionary? */
bool nps_dictionary__has(const struct nps_dictionary *dict, uint64_t hash);

#endif
