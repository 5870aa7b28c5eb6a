/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts as records: a long one becomes several; one that is too long is truncated and marked. */
#ifndef NPS_TEXTS_H
#define NPS_TEXTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "event.h"

/*
 * Creates the records of a text of `len` bytes of process `pid`, with an id of its own. Returns their
 * number, 1 to NPS_TEXT_PARTS; the last is marked NPS_STR_CUT if the text was longer than NPS_TEXT_MAX.
 */
unsigned nps_text__split(const char *text, size_t len, uint32_t pid, uint64_t time,
			 struct nps_string parts[NPS_TEXT_PARTS]);

/*
 * Reads a NUL-terminated text of a process into `text`, waiting for pages that are not in memory. Returns
 * its length, NPS_TEXT_MAX + 1 if it is longer than NPS_TEXT_MAX; -errno. A text that ends with its mapping
 * is returned up to there.
 */
ssize_t nps_text__read(pid_t pid, uint64_t address, char text[NPS_TEXT_MAX + 2]);

#endif
