/* SPDX-License-Identifier: BSD-2-Clause */
/* What the harnesses share: an importer is all that they add. */
#ifndef FUZZ_H
#define FUZZ_H

#include "archive.h"
#include "model/model.h"

/* The input's files are in PATH; temporary files go to TMPFD. 0 or a negative errno. */
typedef int (*fuzz_import_fn)(struct nps_model *model, const char *path);

struct fuzz_scratch {
	char in[128], out[128];
	int infd, outfd;
};

/* Fresh directories in memory with the archive's files; false if DATA is no archive. */
bool fuzz_begin(struct fuzz_scratch *scratch, struct fuzz_archive *archive, const uint8_t *data, size_t size);
void fuzz_end(struct fuzz_scratch *scratch, struct fuzz_archive *archive);

/* All of it for importers of one model: FIRST is a part of the names of the file or directory to import. */
void fuzz_one(const uint8_t *data, size_t size, const char *below, fuzz_import_fn import);

/* Derives and exports MODEL in every format; aborts if a contract of the model or of a format is broken. */
void fuzz_finish(struct nps_model *model, const struct fuzz_scratch *scratch, uint8_t options);

/*
 * Aborts if rows are not in the order, or texts and rows not in the range, that model.h and tables.h promise.
 */
void fuzz_check_model(const struct nps_model *model);

/* Aborts if a file in DIR is not of the type of its name: JSON, CSV or a database. */
void fuzz_check_result(const char *dir);

/* Changes a database's rows through SQL; the bytes of SQLite's own pages are another matter. New size. */
size_t fuzz_mutate_db(uint8_t *data, size_t size, size_t max, unsigned int seed);

#endif
