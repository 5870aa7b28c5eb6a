/* SPDX-License-Identifier: BSD-2-Clause */
/* The vendor's databases into the model. */
#include "import/import.h"

#include "base/input_file.h"
#include "base/progress.h"
#include "import/ascend_db/import_db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* nps_row(globalTaskId): the row of the task, by which its details are sorted; NULL: there is none. */
static void row_function(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct nps_db_import *in = sqlite3_user_data(context);
	uint32_t row = nps_index__get(&in->tasks, sqlite3_value_int64(argv[0]));

	(void)argc;
	if (row != NPS_NONE)
		sqlite3_result_int64(context, row);
}

static int read_family(struct nps_db_import *in, const struct nps_db_table *tables)
{
	int err = 0;

	for (const struct nps_db_table *table = tables; !err && table->name; table++) {
		err = nps_db_table__read(in, table);
		if (err || strcmp(table->name, "TASK"))
			continue;
		err = nps_db_tasks__index(in);
	}
	return err;
}

static int read_all(struct nps_db_import *in, const char *path)
{
	int err = nps_db_strings__read(in);

	if (err)
		return err;
	err = nps_db_identity__read(in, path);
	for (const struct nps_db_table *const *family = nps_db_families; !err && *family; family++)
		if (*family != nps_db_own_tables)
			err = read_family(in, *family);
	if (err)
		return err;
	err = nps_db_task_time__read(in);
	if (err)
		return err;
	err = nps_db_enums__read(in);
	if (err)
		return err;
	err = nps_db_complete(in);
	if (err)
		return err;
	nps_db_unknown__count(in);
	in->model->overlapped = in->model->overlap.t.len > 0;
	return 0;
}

/* analysis.db beside the database: texts, no ids. It may be missing. */
static int read_analysis(struct nps_db_import *in, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct nps_model *model = in->model;
	char name[PATH_MAX];
	int err;

	if (snprintf(name, sizeof(name), "%.*sanalysis.db", slash ? (int)(slash + 1 - path) : 0, path) >=
		    (int)sizeof(name) ||
	    !nps_input__exists(AT_FDCWD, name))
		return 0;
	if (nps_db_source__open(&in->source, name)) {
		nps_model__lost(model, 1, "analysis.db, which cannot be read");
		return 0;
	}
	err = read_family(in, nps_db_analysis_tables);
	model->step_traced = model->step_trace.t.len > 0;
	model->comm_analyzed = model->comm_time.t.len || model->comm_bandwidth.t.len ||
			       model->comm_matrix.t.len;
	/* Older versions of the table lack the device: it is the first one. */
	if (!nps_db_source__has_column(&in->source, "StepTraceTime", "deviceId"))
		for (size_t i = 0; i < model->step_trace.t.len; i++)
			model->step_trace.device[i] = model->device.t.len ? model->device.id[0] : 0;
	nps_db_source__close(&in->source);
	return err;
}

static int database_import(struct nps_db_import *in, const char *path)
{
	int err = nps_db_source__open(&in->source, path);

	if (err)
		return err;
	if (sqlite3_create_function(in->source.handle, "nps_row", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, in,
				    row_function, NULL, NULL))
		err = -ENOMEM;
	err = err ? err : read_all(in, path);
	nps_db_source__close(&in->source);
	err = err ? err : read_analysis(in, path);
	if (err)
		nps_msg_cannot(path, err);
	return err;
}

int nps_import__ascend_db(struct nps_model *model, const char *path)
{
	struct nps_db_import in = { .model = model };
	int err;

	nps_vec__init(&in.runs, model->tmpfd, sizeof(struct nps_db_run));
	nps_index__init(&in.tasks, model->tmpfd, 0, 0, 0);
	nps_progress__stage(model->progress, "reading the database", 0, "rows");
	err = database_import(&in, path);
	nps_index__free(&in.tasks);
	nps_vec__free(&in.runs);
	return err;
}
