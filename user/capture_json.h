/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of session.json: times and counts need all their digits, which a number of cJSON, a double, has not. */
#ifndef NPS_CAPTURE_JSON_H
#define NPS_CAPTURE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

void nps_json__add_u64(cJSON *j, const char *name, uint64_t v);

/* null where it is not KNOWN. */
void nps_json__add_u64_or_null(cJSON *j, const char *name, bool known, uint64_t v);

#endif
