/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz.h"

#include "base/util.h"

#include <cjson/cJSON.h>
#include <fnmatch.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static void broken(const char *path, const char *what, size_t where)
{
	fprintf(stderr, "broken contract: %s: %s at %zu\n", path, what, where);
	abort();
}

/* The content, decompressed if it is, with a NUL behind it. */
static char *content(const char *path, size_t *len)
{
	gzFile file = gzopen(path, "rb");
	size_t room = 1 << 16;
	char *text = malloc(room + 1);
	int n;

	if (!file || !text)
		abort();
	*len = 0;
	while ((n = gzread(file, text + *len, room - *len)) > 0) {
		*len += n;
		if (*len == room) {
			char *more = realloc(text, (room *= 2) + 1);

			if (!more)
				abort();
			text = more;
		}
	}
	if (n < 0)
		broken(path, "not gzip", *len);
	gzclose(file);
	text[*len] = 0;
	return text;
}

static void check_utf8(const char *path, const char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = text[i] ? nps_utf8_len(text + i, len - i) : 0;

		if (!n)
			broken(path, "not UTF-8", i);
		i += n;
	}
}

static void check_json(const char *path, const char *text, size_t len)
{
	const char *end = NULL;
	cJSON *json = cJSON_ParseWithLengthOpts(text, len + 1, &end, 1);

	if (!json)
		broken(path, "not JSON", end ? (size_t)(end - text) : 0);
	cJSON_Delete(json);
}

/* Every record has as many cells as the first one, and quotes are closed. */
static void check_csv(const char *path, const char *text, size_t len)
{
	size_t cells = 1, first = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			quoted = !quoted;
		if (quoted)
			continue;
		if (text[i] == ',')
			cells++;
		if (text[i] == '\n') {
			if (first && cells != first)
				broken(path, "another number of cells", i);
			first = cells;
			cells = 1;
		}
	}
	if (quoted || !len || text[len - 1] != '\n')
		broken(path, "cut", len);
}

static int not_ok(void *ctx, int n, char **values, char **names)
{
	(void)n;
	(void)names;
	if (!values[0] || strcmp(values[0], "ok"))
		broken(ctx, values[0] ? values[0] : "no answer", 0);
	return 0;
}

static void check_db(const char *path)
{
	sqlite3 *db;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) ||
	    sqlite3_exec(db, "PRAGMA quick_check", not_ok, (void *)path, NULL))
		broken(path, "not a database", 0);
	sqlite3_close(db);
}

static int check_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + ftw->base;
	size_t len;
	char *text;

	(void)st;
	if (type != FTW_F)
		return 0;
	if (!fnmatch("*.db", name, 0)) {
		check_db(path);
		return 0;
	}
	if (!fnmatch("*.pftrace", name, 0))
		return 0;
	text = content(path, &len);
	check_utf8(path, text, len);
	if (!fnmatch("*.json", name, 0) || !fnmatch("*.json.gz", name, 0))
		check_json(path, text, len);
	else if (!fnmatch("*.csv", name, 0))
		check_csv(path, text, len);
	free(text);
	return 0;
}

void fuzz_check_result(const char *dir)
{
	if (nftw(dir, check_entry, 16, FTW_PHYS))
		abort();
}
