/* SPDX-License-Identifier: BSD-2-Clause */
/* One new SQLite database that is written in one transaction. */
#ifndef NPS_DB_WRITER_H
#define NPS_DB_WRITER_H

#include <sqlite3.h>

struct nps_db_writer {
	sqlite3 *handle;
	int err; /* first error, negative errno; nothing is written after it */
};

/* Makes PATH, which must not exist, and begins. 0 or negative errno; closing is due in either case. */
int nps_db_writer__open(struct nps_db_writer *db, const char *path);

/* Runs SQL, unless there was an error before. */
void nps_db_writer__exec(struct nps_db_writer *db, const char *sql);

/* NULL after an error. The caller finalizes it. */
sqlite3_stmt *nps_db_writer__prepare(struct nps_db_writer *db, const char *sql);

/* Runs a statement that returns no rows and prepares it for the next values. */
void nps_db_writer__step(struct nps_db_writer *db, sqlite3_stmt *stmt);

/* Commits and closes. 0 or the first error. */
int nps_db_writer__close(struct nps_db_writer *db);

#endif
