/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON files of the profiler. Integers, and times in us, that a double cannot hold keep their digits. */
#ifndef NPS_FW_JSON_H
#define NPS_FW_JSON_H

#include <stdbool.h>
#include <stdint.h>

struct cJSON;

/* Reads NAME in DIRFD; NULL with errno: ENOENT, EFBIG, EILSEQ (no JSON), of reading. Free: cJSON_Delete(). */
struct cJSON *nps_fw_json__read(int dirfd, const char *name);

/* The value that all of TEXT is; NULL with errno. */
struct cJSON *nps_fw_json__parse(const char *text);

/* Member NAME of OBJECT as an integer, which may be written as a string. */
bool nps_fw_json__i64(const struct cJSON *object, const char *name, int64_t *value);

#endif
