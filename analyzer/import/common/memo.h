/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw texts of records and what was made of them. The same few texts come in every record, so that
 * cleaning and interning is done once a text. It forgets when it becomes large.
 */
#ifndef NPS_FW_MEMO_H
#define NPS_FW_MEMO_H

#include "base/map.h"
#include "base/string_table.h"

struct nps_fw_memo {
	struct nps_vec bytes; /* of the texts */
	struct nps_vec entries; /* struct memo_entry */
	struct nps_map by_hash; /* -> entry */
};

void nps_fw_memo__init(struct nps_fw_memo *memo, int dirfd);

/*
 * Where the value of TEXT is kept, NPS_NONE if it is new; valid until the next call. NULL if there is no
 * memory.
 */
uint32_t *nps_fw_memo__at(struct nps_fw_memo *memo, const void *text, size_t len);

void nps_fw_memo__free(struct nps_fw_memo *memo);

/* The id of a text of any length, NPS_NONE if there is no memory. Long ones get a new one each time. */
uint32_t nps_fw_intern(struct nps_strings *strings, const char *text, size_t len);

/* The same through MEMO, which must hold nothing but ids of texts. */
uint32_t nps_fw_memo__text(struct nps_fw_memo *memo, struct nps_strings *strings, const char *text,
			   size_t len);

#endif
