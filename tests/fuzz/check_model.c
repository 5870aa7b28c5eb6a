/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void broken(const char *table, const char *column, size_t row, const char *what)
{
	fprintf(stderr, "broken contract: %s.%s row %zu: %s\n", table, column, row, what);
	abort();
}

static void check_texts(const struct nps_model *model, const char *name, const struct nps_table *table)
{
	for (size_t c = 0; c < table->ncolumns; c++) {
		const uint32_t *texts = nps_table__cells(table, c);

		if (table->columns[c].kind != NPS_COLUMN_text)
			continue;
		for (size_t row = 0; row < table->len; row++)
			if (texts[row] != NPS_NONE && texts[row] >= model->strings->at.len)
				broken(name, table->columns[c].name, row, "no such text");
	}
}

/* A column of times that do not go back. */
static void check_ascends(const char *name, const struct nps_table *table, const uint64_t *times)
{
	for (size_t row = 1; row < table->len; row++)
		if (times[row] < times[row - 1])
			broken(name, "start", row, "before the row before");
}

/* Rows of the task table that ascend. */
static void check_details(const char *name, const struct nps_table *table, const uint32_t *tasks,
			  size_t ntasks)
{
	for (size_t row = 0; row < table->len; row++) {
		if (tasks[row] >= ntasks)
			broken(name, "task", row, "no such task");
		if (row && tasks[row] < tasks[row - 1])
			broken(name, "task", row, "before the row before");
	}
}

static void check_intervals(const char *name, const struct nps_table *table, const uint64_t *start,
			    const uint64_t *end)
{
	for (size_t row = 0; row < table->len; row++)
		if (end[row] < start[row])
			broken(name, "end", row, "before its start");
}

void fuzz_check_model(const struct nps_model *model)
{
#define TEXTS(field, COLUMNS) check_texts(model, #field, &model->field.t);
#define SHARED_TEXTS(field, type, COLUMNS) check_texts(model, #field, &model->field.t);
	NPS_OWN_TABLES(TEXTS)
	NPS_SHARED_TABLES(SHARED_TEXTS)
#define ASCENDS(table) check_ascends(#table, &model->table.t, model->table.start)
	ASCENDS(task);
	ASCENDS(api);
	ASCENDS(comm_op);
	ASCENDS(osrt);
	ASCENDS(block);
#define INTERVALS(table) check_intervals(#table, &model->table.t, model->table.start, model->table.end)
	INTERVALS(task);
	INTERVALS(api);
	INTERVALS(comm_op);
	INTERVALS(osrt);
	INTERVALS(block);
#define DETAILS(table) check_details(#table, &model->table.t, model->table.task, model->task.t.len)
	DETAILS(compute);
	DETAILS(memcpy);
	DETAILS(pmu);
	DETAILS(bounds);
	DETAILS(comm_task);
	DETAILS(comm_schedule);
}
