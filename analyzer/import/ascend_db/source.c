/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/ascend_db/source.h"

#include "base/input_file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST_CELL (16 << 20)
#define STEPS_A_BYTE                                                                                         \
	16 /* a row of a real file is 6 bytes at least and takes some 20 steps, 40 with sorting */
#define LEAST_STEPS 4000000
#define STEPS_PER_CHECK 4096 /* steps between two looks at what is left */

/* SQLite's own lock bytes: outside of every file's data. */
#define LOCK_START 0x40000000
#define LOCK_BYTES 512

static int refuse(const char *path, int err, const char *why)
{
	nps_msg_failure("cannot read %s: %s", path, why);
	return err;
}

static bool has_content(const char *path, const char *suffix)
{
	char file[PATH_MAX], name[PATH_MAX];
	struct stat st;

	/* SQLite's are beside the file that a link leads to. */
	return realpath(path, file) &&
	       snprintf(name, sizeof(name), "%s%s", file, suffix) < (int)sizeof(name) &&
	       nps_input__exists(AT_FDCWD, name) && (stat(name, &st) || st.st_size > 0);
}

static bool being_written(int fd)
{
	struct flock lock = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = LOCK_START, .l_len = LOCK_BYTES
	};

	return !fcntl(fd, F_GETLK, &lock) && lock.l_type == F_WRLCK;
}

static int check_open(int fd, const char *path, uint64_t *size)
{
	static const char magic[16] = "SQLite format 3";
	char head[16] = "";
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return refuse(path, -errno, strerror(errno));
	n = S_ISREG(st.st_mode) ? pread(fd, head, sizeof(head), 0) : 0;
	if (n < 0)
		return refuse(path, -errno, strerror(errno));
	if (n != sizeof(head) || memcmp(head, magic, sizeof(magic)))
		return refuse(path, -EINVAL, "not an SQLite database");
	if (being_written(fd))
		return refuse(path, -EBUSY, "another program is writing to it: close that first");
	/* What lies in these files belongs to the database, and applying it would change it. */
	if (has_content(path, "-wal"))
		return refuse(
			path, -EBUSY,
			"another program has it open, or ended without closing it (there is a -wal file): "
			"close that program, or open and close a copy with sqlite3");
	if (has_content(path, "-journal"))
		return refuse(path, -EBUSY,
			      "a program ended while it was writing (there is a -journal file): open and "
			      "close a copy with sqlite3");
	*size = st.st_size;
	return 0;
}

static int check(const char *path, uint64_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return refuse(path, -errno, strerror(errno));
	err = check_open(fd, path, size);
	close(fd);
	return err;
}

/* A URI has its own meaning of ?, # and %. */
static int uri_of(const char *path, char *uri, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = snprintf(uri, size, "file:");

	for (; *path && len + 4 < size; path++) {
		unsigned char c = *path;

		if (c == '?' || c == '#' || c == '%') {
			uri[len++] = '%';
			uri[len++] = hex[c >> 4];
			uri[len++] = hex[c & 15];
		} else {
			uri[len++] = c;
		}
	}
	return *path || snprintf(uri + len, size - len, "?immutable=1") >= (int)(size - len) ? -ENAMETOOLONG
											     : 0;
}

/* Pages that point at each other in circles would otherwise be read for years. */
static int progress_check(void *arg)
{
	struct nps_db_source *source = arg;

	source->left -= NPS_MIN(source->left, (uint64_t)STEPS_PER_CHECK);
	return !source->left;
}

int nps_db_source__open(struct nps_db_source *source, const char *path)
{
	char uri[3 * PATH_MAX];
	uint64_t size = 0;
	int err;

	*source = (struct nps_db_source){ 0 };
	err = check(path, &size);
	if (err)
		return err;
	if (uri_of(path, uri, sizeof(uri)))
		return refuse(path, -ENAMETOOLONG, strerror(ENAMETOOLONG));
	source->budget = LEAST_STEPS + STEPS_A_BYTE * size;
	if (sqlite3_open_v2(uri, &source->handle,
			    SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
				    SQLITE_OPEN_PRIVATECACHE,
			    NULL)) {
		err = refuse(path, -EIO, source->handle ? sqlite3_errmsg(source->handle) : strerror(ENOMEM));
		nps_db_source__close(source);
		return err;
	}
	sqlite3_limit(source->handle, SQLITE_LIMIT_LENGTH, LONGEST_CELL);
	sqlite3_limit(source->handle, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_db_config(source->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(source->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_progress_handler(source->handle, STEPS_PER_CHECK, progress_check, source);
	source->left = source->budget;
	/* Sorting goes to files when it does not fit into the cache. */
	sqlite3_exec(source->handle,
		     "PRAGMA cell_size_check=1; PRAGMA cache_size=-8192; PRAGMA temp_store=FILE", NULL, NULL,
		     NULL);
	if (!nps_db_source__any(source, "SELECT 1 FROM sqlite_master")) {
		err = sqlite3_errcode(source->handle);
		err = refuse(path, -EINVAL,
			     err && err != SQLITE_DONE ? sqlite3_errmsg(source->handle) : "it has no tables");
		nps_db_source__close(source);
		return err;
	}
	source->path = path;
	return 0;
}

void nps_db_source__close(struct nps_db_source *source)
{
	sqlite3_close(source->handle);
	source->handle = NULL;
}

/* Reports SQLite's error of a file that was opened; one that cannot be opened is refused elsewhere. */
static void sqlite_report(const struct nps_db_source *source)
{
	if (source->path)
		nps_input__unusable(AT_FDCWD, source->path, sqlite3_errmsg(source->handle));
}

sqlite3_stmt *nps_db_source__prepare(struct nps_db_source *source, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int rc;

	source->left = source->budget;
	rc = sqlite3_prepare_v2(source->handle, sql, -1, &stmt, NULL);
	if (rc && rc != SQLITE_ERROR) /* that one is a name which is not there */
		sqlite_report(source);
	return rc ? NULL : stmt;
}

int nps_db_source__step(struct nps_db_source *source, sqlite3_stmt *stmt)
{
	int rc = sqlite3_step(stmt);

	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		sqlite_report(source);
	return rc;
}

bool nps_db_source__any(struct nps_db_source *source, const char *sql)
{
	sqlite3_stmt *stmt = nps_db_source__prepare(source, sql);
	bool any = stmt && nps_db_source__step(source, stmt) == SQLITE_ROW;

	sqlite3_finalize(stmt);
	return any;
}

static bool any_named(struct nps_db_source *source, const char *sql, const char *first, const char *second)
{
	sqlite3_stmt *stmt = nps_db_source__prepare(source, sql);
	bool any;

	if (!stmt)
		return false;
	sqlite3_bind_text(stmt, 1, first, -1, SQLITE_STATIC);
	if (second)
		sqlite3_bind_text(stmt, 2, second, -1, SQLITE_STATIC);
	any = nps_db_source__step(source, stmt) == SQLITE_ROW;
	sqlite3_finalize(stmt);
	return any;
}

bool nps_db_source__has_table(struct nps_db_source *source, const char *table)
{
	return any_named(
		source,
		"SELECT 1 FROM sqlite_master WHERE type='table' AND name=? COLLATE NOCASE AND rootpage>0",
		table, NULL);
}

bool nps_db_source__has_column(struct nps_db_source *source, const char *table, const char *column)
{
	return any_named(source, "SELECT 1 FROM pragma_table_info(?) WHERE name=? COLLATE NOCASE", table,
			 column);
}
