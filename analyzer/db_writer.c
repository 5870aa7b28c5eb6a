/* SPDX-License-Identifier: BSD-2-Clause */
/* SQLite, for writing one new database as fast as it goes. */
#include "export_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void db_error(struct nps_db *db, int rc)
{
	if (db->err)
		return;
	switch (rc & 0xff) {
	case SQLITE_FULL:
		db->err = -ENOSPC;
		break;
	case SQLITE_NOMEM:
		db->err = -ENOMEM;
		break;
	default:
		db->err = -EIO;
	}
	if (db->err == -EIO) {
		int saved = sqlite3_system_errno(db->handle);

		db->err = saved ? -saved : -EIO;
	}
}

int nps_db__open(struct nps_db *db, const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0640), rc;

	*db = (struct nps_db){ 0 };
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS,
		       0); /* no lock around each allocation; refused if somebody was first */
	if (fd < 0)
		return db->err = -errno;
	fchmod(fd, 0640);
	close(fd);
	rc = sqlite3_open_v2(path, &db->handle,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
	if (rc)
		db_error(db, rc);
	nps_db__exec(db, "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA "
			 "locking_mode=EXCLUSIVE;"
			 "PRAGMA cache_size=-16384; PRAGMA temp_store=MEMORY; BEGIN");
	return db->err;
}

void nps_db__exec(struct nps_db *db, const char *sql)
{
	int rc = db->err ? 0 : sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	if (rc)
		db_error(db, rc);
}

sqlite3_stmt *nps_db__insert(struct nps_db *db, const char *table, int columns)
{
	sqlite3_stmt *stmt = NULL;
	char sql[256];
	int len = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(?", table), rc;

	for (int i = 1; i < columns; i++)
		len += snprintf(sql + len, sizeof(sql) - len, ",?");
	snprintf(sql + len, sizeof(sql) - len, ")");
	rc = db->err ? 0 : sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
	if (rc)
		db_error(db, rc);
	return stmt;
}

void nps_db__step(struct nps_db *db, sqlite3_stmt *stmt)
{
	int rc = db->err ? SQLITE_DONE : sqlite3_step(stmt);

	if (rc != SQLITE_DONE)
		db_error(db, rc);
	sqlite3_reset(stmt);
}

void nps_db__row(struct nps_db *db, sqlite3_stmt *stmt, const int64_t *values, int n)
{
	for (int i = 0; i < n; i++)
		sqlite3_bind_int64(stmt, i + 1, values[i]);
	nps_db__step(db, stmt);
}

int nps_db__close(struct nps_db *db)
{
	if (db->handle) {
		nps_db__exec(db, "COMMIT");
		/* The header then says what the vendor's files say; the setting itself is not stored. */
		nps_db__exec(db, "PRAGMA journal_mode=DELETE");
		if (sqlite3_close(db->handle) && !db->err)
			db->err = -EIO;
		db->handle = NULL;
	}
	return db->err;
}

/* INSERT of ROWS rows. */
static sqlite3_stmt *prepare_rows(struct nps_db_bulk *bulk, int rows)
{
	char sql[128 + NPS_DB_BATCH * 100];
	int len = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES", bulk->table), rc;
	sqlite3_stmt *stmt = NULL;

	for (int i = 0; i < rows; i++)
		len += snprintf(sql + len, sizeof(sql) - len, "%s%s", i ? "," : "", bulk->row);
	rc = bulk->db->err ? 0 : sqlite3_prepare_v2(bulk->db->handle, sql, -1, &stmt, NULL);
	if (rc)
		db_error(bulk->db, rc);
	return stmt;
}

static void run_rows(struct nps_db_bulk *bulk, sqlite3_stmt *stmt)
{
	for (int i = 0; i < bulk->rows * bulk->columns && stmt; i++) {
		if (bulk->values[i] == NPS_DB_NULL)
			sqlite3_bind_null(stmt, i + 1);
		else
			sqlite3_bind_int64(stmt, i + 1, bulk->values[i]);
	}
	if (stmt)
		nps_db__step(bulk->db, stmt);
	bulk->rows = 0;
}

void nps_db_bulk__init(struct nps_db_bulk *bulk, struct nps_db *db, const char *table, const char *row,
		       int columns)
{
	int len = 0;

	bulk->db = db;
	bulk->columns = columns;
	bulk->rows = 0;
	snprintf(bulk->table, sizeof(bulk->table), "%s", table);
	if (row)
		snprintf(bulk->row, sizeof(bulk->row), "%s", row);
	for (int i = 0; !row && i < columns; i++)
		len += snprintf(bulk->row + len, sizeof(bulk->row) - len, "%s?%s", i ? "," : "(",
				i == columns - 1 ? ")" : "");
	bulk->many = prepare_rows(bulk, NPS_DB_BATCH);
}

void nps_db_bulk__add(struct nps_db_bulk *bulk, const int64_t *values)
{
	memcpy(bulk->values + bulk->rows * bulk->columns, values, bulk->columns * sizeof(*values));
	if (++bulk->rows == NPS_DB_BATCH)
		run_rows(bulk, bulk->many);
}

void nps_db_bulk__finish(struct nps_db_bulk *bulk)
{
	sqlite3_stmt *rest = bulk->rows ? prepare_rows(bulk, bulk->rows) : NULL;

	if (rest)
		run_rows(bulk, rest);
	sqlite3_finalize(rest);
	sqlite3_finalize(bulk->many);
	bulk->many = NULL;
}
