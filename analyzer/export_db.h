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

#define NPS_DB_NULL INT64_MIN /* a NULL among integers */
#define NPS_DB_BATCH 32 /* rows of one statement: a statement costs more than a row */

/* Many rows of integers into one table. */
struct nps_db_bulk {
	struct nps_db *db;
	sqlite3_stmt *many;
	char table[48], row[96];
	int columns, rows;
	int64_t values[NPS_DB_BATCH * 20];
};

/* ROW is the parenthesised list of values with `?` for each column, NULL for plain ones. */
void nps_db_bulk__init(struct nps_db_bulk *bulk, struct nps_db *db, const char *table, const char *row,
		       int columns);
void nps_db_bulk__add(struct nps_db_bulk *bulk, const int64_t *values);
/* Writes what is left. */
void nps_db_bulk__finish(struct nps_db_bulk *bulk);

/* Commits (rolls back after an error) and closes. 0 or the first error. */
int nps_db__close(struct nps_db *db);

/* Creates the tables and fills the enums of schema 1.2.0 (outputs 4.2 to 4.4). */
void nps_db__schema(struct nps_db *db);

#endif
