/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values in session.json: numbers with all digits, which times and counts need and cJSON's doubles do not
 * have; texts of any bytes.
 */
#ifndef NPS_SESSION_JSON_H
#define NPS_SESSION_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

void nps_json__add_u64(cJSON *j, const char *name, uint64_t v);

/* Adds null if it is not KNOWN. */
void nps_json__add_u64_or_null(cJSON *j, const char *name, bool known, uint64_t v);

/* A JSON string of any bytes: what is not ASCII becomes `?`. */
cJSON *nps_json_text(const char *s);

#endif
