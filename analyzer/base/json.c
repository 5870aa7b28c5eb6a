/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json.h"

#include "base/input_file.h"
#include "base/memory.h"
#include "base/util.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST (16UL << 20) /* bytes of a file */
#define EXACT 15 /* digits that a double holds */

static char *json_read_file(int dirfd, const char *name, size_t *len)
{
	struct stat st;
	int fd = nps_input_file__open(dirfd, name, &st), err = 0;
	char *text = NULL;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	if ((uint64_t)st.st_size > LARGEST)
		err = EFBIG;
	else if (!(text = malloc(st.st_size + 1)))
		err = ENOMEM;
	for (*len = 0; text && *len < (size_t)st.st_size;) {
		ssize_t got = read(fd, text + *len, st.st_size - *len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err = errno;
			nps_input__unreadable_fd(fd, -err);
		}
		if (got <= 0)
			break;
		*len += got;
	}
	if (err == EFBIG)
		nps_input__unreadable_fd(fd, -err);
	if (err == ENOMEM)
		nps_memory__fail(-err);
	close(fd);
	if (err) {
		free(text);
		text = NULL;
	}
	errno = err;
	return text;
}

/* The next number of a JSON text from *AT on, outside of strings; *AT moves behind it. NULL: none. */
static const char *json_next_number(const char **at, size_t *len)
{
	const char *p = *at, *start;

	for (; *p && !((*p >= '0' && *p <= '9') || *p == '-'); p++) {
		if (*p != '"')
			continue;
		for (p++; *p && *p != '"'; p++)
			p += *p == '\\' && p[1];
		if (!*p)
			break;
	}
	start = p;
	p += strspn(p, "0123456789+-.eE");
	*at = p;
	*len = p - start;
	return *len ? start : NULL;
}

static cJSON *following(cJSON *item, cJSON **parents, size_t *depth)
{
	if (item->child && *depth < CJSON_NESTING_LIMIT) {
		parents[(*depth)++] = item;
		return item->child;
	}
	while (!item->next && *depth)
		item = parents[--*depth];
	return *depth ? item->next : NULL;
}

/* An integer, or a time in us with decimals, that a double does not hold. */
static bool loses_digits(const char *number, size_t len)
{
	const char *dot = memchr(number, '.', len);

	if (len <= EXACT || memchr(number, 'e', len) || memchr(number, 'E', len))
		return false;
	return !dot || dot - number >= EXACT - 1;
}

/* The tree has its numbers in the text's order: those that lost digits get the text itself. */
static bool keep_digits(cJSON *json, const char *text)
{
	cJSON *parents[CJSON_NESTING_LIMIT];
	size_t depth = 0, len;

	for (cJSON *item = json; item; item = following(item, parents, &depth)) {
		const char *number;

		if (!cJSON_IsNumber(item))
			continue;
		number = json_next_number(&text, &len);
		if (!number)
			return true;
		if (!loses_digits(number, len))
			continue;
		item->valuestring = cJSON_malloc(len + 1);
		if (!item->valuestring)
			return false;
		memcpy(item->valuestring, number, len);
		item->valuestring[len] = 0;
		item->type = cJSON_Raw;
	}
	return true;
}

/* NULL with errno. STRICT: nothing but blanks may follow the value. */
static cJSON *json_parse_text(const char *text, bool strict)
{
	cJSON *json = cJSON_ParseWithOpts(text, NULL, strict);

	errno = EILSEQ;
	if (!json || keep_digits(json, text))
		return json;
	cJSON_Delete(json);
	errno = ENOMEM;
	return NULL;
}

cJSON *nps_fw_json__parse(const char *text)
{
	return json_parse_text(text, true);
}

cJSON *nps_fw_json__read(int dirfd, const char *name)
{
	size_t len;
	char *raw = json_read_file(dirfd, name, &len), *text;
	cJSON *json = NULL;

	if (!raw)
		return NULL;
	text = malloc(3 * len + 1);
	if (text) {
		nps_utf8_clean(text, raw, len);
		json = json_parse_text(text, false);
	} else {
		nps_memory__fail(-ENOMEM);
	}
	free(text);
	free(raw);
	return json;
}

bool nps_fw_json__i64(const cJSON *object, const char *name, int64_t *value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	char *end;
	long long number;

	if (cJSON_IsNumber(item)) {
		if (!(item->valuedouble >= -1e15 && item->valuedouble <= 1e15))
			return false;
		*value = item->valuedouble;
		return true;
	}
	if (!cJSON_IsString(item) && !cJSON_IsRaw(item))
		return false;
	errno = 0;
	number = strtoll(item->valuestring, &end, 10);
	if (errno || end == item->valuestring || *end)
		return false;
	*value = number;
	return true;
}
