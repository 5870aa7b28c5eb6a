/* SPDX-License-Identifier: BSD-2-Clause */
/* What the writers of the two databases share. */
#ifndef NPS_EXPORT_DB_H
#define NPS_EXPORT_DB_H

#include "map.h"

#include <sqlite3.h>
#include <stdint.h>

/* One database that is being written, in one transaction. */
struct nps_db {
	sqlite3 *handle;
	int err; /* first error, negative errno */
};

/* Opens PATH (new) and begins. 0 or negative errno, said on stderr. */
int nps_db__open(struct nps_db *db, const char *path);
/* Runs SQL, which is a constant of this program. */
void nps_db__exec(struct nps_db *db, const char *sql);
/* Prepares `INSERT INTO table VALUES(?,...)`; NULL on error. */
sqlite3_stmt *nps_db__insert(struct nps_db *db, const char *table, int columns);
/* Binds the N integers from column 1 on, steps and resets. */
void nps_db__row(struct nps_db *db, sqlite3_stmt *stmt, const int64_t *values, int n);
void nps_db__step(struct nps_db *db, sqlite3_stmt *stmt);
/* Commits (rolls back after an error) and closes. 0 or the first error. */
int nps_db__close(struct nps_db *db);

/* Creates the tables and fills the enums of schema 1.2.0 (outputs 4.2 to 4.4). */
void nps_db__schema(struct nps_db *db);

#endif
