/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the importer of databases share. */
#ifndef NPS_IMPORT_DB_H
#define NPS_IMPORT_DB_H

#include "base/index.h"
#include "base/progress.h"
#include "import/ascend_db/source.h"
#include "import/ascend_db/spec.h"

struct nps_db_import {
	struct nps_model *model;
	struct nps_db_source source;
	unsigned int generation; /* NPS_DB_* */
	struct nps_vec runs; /* struct nps_db_run: STRING_IDS */
	struct nps_index tasks; /* globalTaskId -> row of the task table */
	uint64_t latest; /* start that was read, ns, or is known to be there */
	bool searched; /* all tables were searched for it */
	unsigned int zero_is_unknown; /* bit i: of nps_db_usages */
};

/* Consecutive ids whose texts are consecutive too. */
struct nps_db_run {
	uint32_t id, text, count;
};

/* Reads STRING_IDS. 0 or negative errno: of the system, not of the file. So with all that follow. */
int nps_db_strings__read(struct nps_db_import *in);

/* The text of an id, NPS_NONE if there is none. */
uint32_t nps_db_strings__text(const struct nps_db_import *in, int64_t id);

/* Reads TABLE, if it is there, into its table of the model. */
int nps_db_table__read(struct nps_db_import *in, const struct nps_db_table *table);

/* Reads NPUSCOPE_TASK_TIME into `bounds` and task.source. */
int nps_db_task_time__read(struct nps_db_import *in);

/* Fills in->tasks. */
int nps_db_tasks__index(struct nps_db_import *in);

/*
 * Makes INDEX lead from each of the LEN keys to the first row that has it. Returns how many keys have none,
 * or negative errno.
 */
int64_t nps_db_index__build(struct nps_index *index, const struct nps_model *model, const uint32_t *keys,
			    size_t len);

/* Rows of ENUM_* tables that the generation does not have. */
int nps_db_enums__read(struct nps_db_import *in);

/* META_DATA, the tables of one row and the files beside the database at PATH. */
int nps_db_identity__read(struct nps_db_import *in, const char *path);

/* What follows from several rows: class, name and core of tasks, operators of calls, numbers of the queue. */
int nps_db_complete(struct nps_db_import *in);

/* Counts tables and columns that hold data and that no schema has. */
void nps_db_unknown__count(struct nps_db_import *in);

/* NAME for a message: a file's own words do not go to a terminal as they are. */
const char *nps_db_printable(const char *name, char *out, size_t size);

#endif
