/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/db_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

static void db_failed(struct nps_db_writer *db, int rc)
{
	int saved;

	if (db->err)
		return;
	switch (rc & 0xff) {
	case SQLITE_FULL:
		db->err = -ENOSPC;
		break;
	case SQLITE_NOMEM:
		db->err = -ENOMEM;
		break;
	case SQLITE_CONSTRAINT: /* the data violate the schema; no file system is to blame */
		db->err = -EILSEQ;
		break;
	default:
		saved = db->handle ? sqlite3_system_errno(db->handle) : 0;
		db->err = saved ? -saved : -EIO;
	}
}

static void configure(void)
{
	/* No lock around each allocation. Refused if somebody used SQLite before, and then only slower. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_initialize();
}

int nps_db_writer__open(struct nps_db_writer *db, const char *path)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fd = open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0640), rc;

	*db = (struct nps_db_writer){ 0 };
	if (fd < 0)
		return db->err = -errno;
	fchmod(fd, 0640); /* whatever the umask */
	close(fd);
	pthread_once(&once, configure);
	rc = sqlite3_open_v2(path, &db->handle,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
	if (rc)
		db_failed(db, rc);
	nps_db_writer__exec(db, "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
				"PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-8192; BEGIN");
	return db->err;
}

void nps_db_writer__exec(struct nps_db_writer *db, const char *sql)
{
	int rc = db->err ? SQLITE_OK : sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	if (rc)
		db_failed(db, rc);
}

sqlite3_stmt *nps_db_writer__prepare(struct nps_db_writer *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int rc = db->err ? SQLITE_OK : sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);

	if (rc)
		db_failed(db, rc);
	return stmt;
}

void nps_db_writer__step(struct nps_db_writer *db, sqlite3_stmt *stmt)
{
	int rc;

	if (db->err)
		return;
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_DONE)
		db_failed(db, rc);
	sqlite3_reset(stmt);
}

int nps_db_writer__close(struct nps_db_writer *db)
{
	nps_db_writer__exec(db, "COMMIT");
	/* The header is then the same as in the vendor's files; the setting itself is not stored. */
	nps_db_writer__exec(db, "PRAGMA journal_mode=DELETE");
	if (sqlite3_close(db->handle) && !db->err)
		db->err = -EIO;
	db->handle = NULL;
	return db->err;
}
