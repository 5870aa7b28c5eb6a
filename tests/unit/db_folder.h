/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder of a group of tests, with folders `in` and `out`, and databases that are imported from it. */
#ifndef DB_FOLDER_H
#define DB_FOLDER_H

#include "model/model.h"

#include <stddef.h>

extern char db_folder[128]; /* its path */
extern int db_folder_fd;

/* Of a group of tests; the second removes it. */
int db_folder_setup(void **state);
int db_folder_teardown(void **state);

/* The path of NAME in the folder; it stays valid. */
const char *db_folder_path(const char *name);

/* Writes a file of LEN bytes. */
void db_folder_write(const char *path, const void *bytes, size_t len);

/* Imports the database at PATH into MODEL, which the caller frees. */
void db_folder_import(struct nps_model *model, const char *path);

#endif
