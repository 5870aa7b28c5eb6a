/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/session_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nps_json__add_u64(cJSON *j, const char *name, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	cJSON_AddRawToObject(j, name, text);
}

void nps_json__add_u64_or_null(cJSON *j, const char *name, bool known, uint64_t v)
{
	if (known)
		nps_json__add_u64(j, name, v);
	else
		cJSON_AddNullToObject(j, name);
}

/* cJSON needs UTF-8; arguments and variables can be any bytes. */
cJSON *nps_json_text(const char *s)
{
	size_t n = strlen(s);
	char *copy = malloc(n + 1);
	cJSON *j;

	if (!copy)
		return NULL;
	for (size_t i = 0; i <= n; i++)
		copy[i] = (unsigned char)s[i] >= 0x80 ? '?' : s[i];
	j = cJSON_CreateString(copy);
	free(copy);
	return j;
}
