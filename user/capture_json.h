/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers in session.json: times and counts need all their digits, which
 * cJSON's numbers, doubles, do not have.
 */
#ifndef NPS_CAPTURE_JSON_H
#define NPS_CAPTURE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

void nps_json__add_u64(cJSON *j, const char *name, uint64_t v);

/* Adds null if it is not KNOWN. */
void nps_json__add_u64_or_null(cJSON *j, const char *name, bool known, uint64_t v);

#endif
