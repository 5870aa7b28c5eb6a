/* SPDX-License-Identifier: BSD-2-Clause */
/* A database that somebody else wrote: read only, never changed, never trusted. */
#ifndef NPS_DB_SOURCE_H
#define NPS_DB_SOURCE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct nps_db_source {
	sqlite3 *handle;
	uint64_t budget; /* steps of SQLite's virtual machine that a statement over a sane file can need */
	uint64_t left;
	const char *path;
};

/*
 * 0, -EBUSY if a program is writing or has left changes beside the file, or another negative errno. The
 * reason has been printed. Closing is due if it was opened.
 */
int nps_db_source__open(struct nps_db_source *source, const char *path);
void nps_db_source__close(struct nps_db_source *source);

/* NULL if SQLite refuses it: because of damage, which is reported, or a name that is not there. */
sqlite3_stmt *nps_db_source__prepare(struct nps_db_source *source, const char *sql);

/* sqlite3_step(), which reports if the file cannot be read on. */
int nps_db_source__step(struct nps_db_source *source, sqlite3_stmt *stmt);

/* An ordinary table, no view and no virtual table. */
bool nps_db_source__has_table(struct nps_db_source *source, const char *table);
bool nps_db_source__has_column(struct nps_db_source *source, const char *table, const char *column);

/* Whether SQL returns a row. */
bool nps_db_source__any(struct nps_db_source *source, const char *sql);

#endif
