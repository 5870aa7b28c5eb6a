/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of any table, by the description of its columns. */
#include "import/ascend_db/import_db.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 4096 /* bytes of a TEXT cell */

union cell {
	uint64_t u;
	int64_t i;
	double f;
};

#define LONGEST_EVENT (30ULL * 86400 * 1000000000) /* ns */

struct losses {
	uint64_t timeless, unknown, backwards, endless, cells, strings;
};

/* Tables that follow from others. What damage leaves of one would contradict those: it is made anew. */
static bool is_derived(const struct nps_db_table *spec)
{
	return spec->table == offsetof(struct nps_model, overlap) ||
	       spec->table == offsetof(struct nps_model, step_trace);
}

struct reader {
	struct nps_db_import *in;
	const struct nps_db_table *spec;
	struct nps_table *table;
	const struct nps_db_column *columns[NPS_DB_MAX_COLUMNS]; /* of the statement */
	int n;
	int first_time, last_time, task; /* among them; -1: none */
	enum { NOT_KNOWN, SINCE_1970, SINCE_START } times; /* what they count from */
	uint8_t other_time; /* cell of a time that the database does not have */
	int order; /* the one that has to ascend */
	uint64_t before; /* its value in the row before */
	union cell cells[NPS_DB_MAX_COLUMNS];
	struct losses losses;
};

const char *nps_db_printable(const char *name, char *out, size_t size)
{
	size_t len = 0;

	for (; *name && len + 1 < size; name++)
		out[len++] = isprint((unsigned char)*name) ? *name : '?';
	out[len] = 0;
	return out;
}

/* --- which columns --- */

static unsigned int column_kind(const struct reader *r, const struct nps_db_column *column)
{
	return nps_db_column__kind(r->in->model, r->spec, column);
}

/* A name that means something else in this generation is not this column. */
static bool is_readable(struct reader *r, const struct nps_db_column *column)
{
	const struct nps_db_table *spec = r->spec;

	if (!column->name || nps_db_column__cell(spec, column) == NPS_DB_NO_CELL ||
	    !nps_db_source__has_column(&r->in->source, spec->name, column->name))
		return false;
	if (column->generations & r->in->generation)
		return true;
	for (int i = 0; i < spec->ncolumns; i++) {
		const struct nps_db_column *other = &spec->columns[i];

		if (other != column && other->generations & r->in->generation &&
		    (!strcmp(other->name, column->name) ||
		     nps_db_column__cell(spec, other) == nps_db_column__cell(spec, column)))
			return false;
	}
	return true;
}

static void choose_columns(struct reader *r)
{
	const struct nps_db_table *spec = r->spec;

	r->n = 0;
	r->first_time = r->last_time = r->task = r->order = -1;
	r->other_time = NPS_DB_NO_CELL;
	r->times = NOT_KNOWN;
	for (int i = 0; i < spec->ncolumns; i++) {
		const struct nps_db_column *c = &spec->columns[i];
		bool missing = c->generations & r->in->generation &&
			       nps_db_column__cell(spec, c) != NPS_DB_NO_CELL;

		if (!is_readable(r, c)) {
			nps_model__lost(r->in->model, missing, "column %s of table %s is not there", c->name,
					spec->name);
			if (missing && column_kind(r, c) == NPS_COLUMN_time)
				r->other_time = nps_db_column__cell(spec, c);
			continue;
		}
		if (column_kind(r, c) == NPS_COLUMN_time) {
			if (r->first_time < 0)
				r->first_time = r->n;
			else
				r->last_time = r->n;
		}
		if (c->value == NPS_DB_TASK)
			r->task = r->n;
		if (spec->sorted && !strcmp(c->name, spec->sorted))
			r->order = r->n;
		r->columns[r->n++] = c;
	}
}

/* Whether rows can be used at all: they need their start or their task. */
static bool is_usable(const struct reader *r)
{
	bool timed = false;

	if (!r->n)
		return false;
	for (int i = 0; i < r->spec->ncolumns; i++) {
		const struct nps_db_column *c = &r->spec->columns[i];

		if (c->value == NPS_DB_TASK && r->task < 0)
			return false;
		if (timed || !c->name || nps_db_column__cell(r->spec, c) == NPS_DB_NO_CELL ||
		    column_kind(r, c) != NPS_COLUMN_time)
			continue;
		timed = true;
		if (r->first_time < 0 || r->columns[r->first_time] != c)
			return false;
	}
	return true;
}

/* --- cells --- */

/* A whole number however it is stored. */
static bool whole(sqlite3_value *cell, int64_t *value)
{
	const char *digits;
	double real;
	char *end;

	switch (sqlite3_value_type(cell)) {
	case SQLITE_INTEGER:
		*value = sqlite3_value_int64(cell);
		return true;
	case SQLITE_FLOAT:
		real = sqlite3_value_double(cell);
		if (!(fabs(real) <= 0x1p62) || real != floor(real))
			return false;
		*value = (int64_t)real;
		return true;
	case SQLITE_TEXT:
		digits = (const char *)sqlite3_value_text(cell);
		if (!digits)
			return false;
		errno = 0;
		*value = strtoll(digits, &end, 10);
		return !errno && end != digits && !*end;
	default:
		return false;
	}
}

static uint64_t kind_max(unsigned int kind)
{
	switch (kind) {
	case NPS_COLUMN_u8:
		return UINT8_MAX;
	case NPS_COLUMN_u16:
		return UINT16_MAX;
	case NPS_COLUMN_u32:
		return UINT32_MAX;
	default:
		return INT64_MAX;
	}
}

/* The value of a cell that is not known. */
static union cell unknown(unsigned int kind)
{
	switch (kind) {
	case NPS_COLUMN_u32:
	case NPS_COLUMN_text:
		return (union cell){ .u = NPS_NONE };
	case NPS_COLUMN_i64:
		return (union cell){ .i = NPS_NULL };
	case NPS_COLUMN_f64:
		return (union cell){ .f = NPS_NAN };
	default:
		return (union cell){ 0 };
	}
}

static union cell cell_number(struct reader *r, sqlite3_value *value, unsigned int kind)
{
	union cell cell = unknown(kind);
	int type = sqlite3_value_type(value);
	int64_t number;

	if (type == SQLITE_NULL)
		return cell;
	if (kind == NPS_COLUMN_f64) {
		double real = sqlite3_value_double(value);

		if ((type == SQLITE_INTEGER || type == SQLITE_FLOAT) && isfinite(real))
			cell.f = real;
		else
			r->losses.cells++;
		return cell;
	}
	if (!whole(value, &number) ||
	    (kind != NPS_COLUMN_i64 && (number < 0 || (uint64_t)number > kind_max(kind)))) {
		r->losses.cells++;
		return cell;
	}
	cell.i = number;
	return cell;
}

static union cell cell_string(struct reader *r, sqlite3_value *value)
{
	union cell cell = unknown(NPS_COLUMN_text);
	int64_t id;

	if (sqlite3_value_type(value) == SQLITE_NULL)
		return cell;
	if (!whole(value, &id)) {
		r->losses.cells++;
		return cell;
	}
	cell.u = nps_db_strings__text(r->in, id);
	r->losses.strings += cell.u == NPS_NONE && id != NPS_NO_ID;
	return cell;
}

static int cell_text_id(struct reader *r, sqlite3_value *value, union cell *cell)
{
	int type = sqlite3_value_type(value);
	struct nps_strings *strings = r->in->model->strings;
	const char *bytes;
	size_t len;

	*cell = unknown(NPS_COLUMN_text);
	if (type == SQLITE_NULL)
		return 0;
	bytes = type == SQLITE_BLOB ? NULL : (const char *)sqlite3_value_text(value);
	if (!bytes) {
		r->losses.cells++;
		return 0;
	}
	len = sqlite3_value_bytes(value);
	r->losses.cells += len > LONGEST;
	/* Short ones are shared; the rare long one is whole. */
	cell->u = len <= 1024 ? nps_strings__add(strings, bytes, len)
			      : nps_strings__append_new(strings, bytes, NPS_MIN(len, (size_t)LONGEST));
	return cell->u == NPS_NONE ? -ENOMEM : 0;
}

static int column_read(struct reader *r, sqlite3_stmt *stmt, int i)
{
	const struct nps_db_column *c = r->columns[i];
	union cell *cell = &r->cells[i];
	/* The statement belongs to one thread, so the value needs no protection. */
	sqlite3_value *value = sqlite3_column_value(stmt, i);
	int64_t id;

	switch ((enum nps_db_value)c->value) {
	case NPS_DB_STRING:
	case NPS_DB_STRING_NULL:
	case NPS_DB_STRING_NO_ID:
	case NPS_DB_STRING_OP:
		*cell = cell_string(r, value);
		return 0;
	case NPS_DB_TEXT:
		return cell_text_id(r, value, cell);
	case NPS_DB_TASK:
		cell->u = whole(value, &id) ? nps_index__get(&r->in->tasks, id) : NPS_NONE;
		return 0;
	default:
		*cell = cell_number(r, value, column_kind(r, c));
		return 0;
	}
}

static bool time_is_known(sqlite3_stmt *stmt, int i)
{
	int64_t value;

	return whole(sqlite3_column_value(stmt, i), &value) && value >= 0;
}

static void store(void *cells, size_t row, unsigned int kind, union cell cell)
{
	switch (kind) {
	case NPS_COLUMN_u8:
		((uint8_t *)cells)[row] = cell.u;
		break;
	case NPS_COLUMN_u16:
		((uint16_t *)cells)[row] = cell.u;
		break;
	case NPS_COLUMN_u32:
	case NPS_COLUMN_text:
		((uint32_t *)cells)[row] = cell.u;
		break;
	case NPS_COLUMN_f64:
		((double *)cells)[row] = cell.f;
		break;
	default:
		((uint64_t *)cells)[row] = cell.u;
	}
}

/* --- rows --- */

/* Appends the cells that were read; columns that the database does not have are unknown. */
static int row_append(struct reader *r)
{
	union cell row[NPS_DB_MAX_COLUMNS];
	size_t at;
	int err = nps_table__add(r->table, &at);

	if (err)
		return err;
	for (uint32_t i = 0; i < r->table->ncolumns; i++)
		row[i] = unknown(r->table->columns[i].kind);
	for (int i = 0; i < r->n; i++)
		row[nps_db_column__cell(r->spec, r->columns[i])] = r->cells[i];
	if (r->other_time != NPS_DB_NO_CELL && r->first_time >= 0) /* a start without an end is a moment */
		row[r->other_time] = r->cells[r->first_time];
	for (uint32_t i = 0; i < r->table->ncolumns; i++)
		store(nps_table__cells(r->table, i), at, r->table->columns[i].kind, row[i]);
	return 0;
}

/* A program that was stopped leaves the largest number for an end. */
static bool is_endless(const union cell *first, const union cell *last)
{
	return last->u > first->u && last->u - first->u > LONGEST_EVENT;
}

/* The latest start of a table, which COLUMN has; 0: none is there, or damage hides them. */
static int64_t latest_start(struct nps_db_import *in, const struct nps_db_table *spec,
			    const struct nps_db_column *column)
{
	sqlite3_stmt *stmt;
	int64_t latest = 0;
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT max(CAST(\"%s\" AS INTEGER)) FROM \"%s\" NOT INDEXED",
		 column->name, spec->name);
	stmt = nps_db_source__prepare(&in->source, sql);
	if (stmt && nps_db_source__step(&in->source, stmt) == SQLITE_ROW)
		latest = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return latest;
}

/* The column of SPEC with the start of its rows; NULL: there is none. */
static const struct nps_db_column *start_column(struct nps_db_import *in, const struct nps_db_table *spec)
{
	struct reader r = { .in = in, .spec = spec, .table = nps_db_table__of(in->model, spec) };

	for (int i = 0; nps_db_source__has_table(&in->source, spec->name) && i < spec->ncolumns; i++) {
		const struct nps_db_column *c = &spec->columns[i];

		if (is_readable(&r, c) && column_kind(&r, c) == NPS_COLUMN_time)
			return c;
	}
	return NULL;
}

static void find_latest(struct nps_db_import *in, const struct nps_db_table *tables)
{
	for (const struct nps_db_table *spec = tables; spec->name && in->latest <= LONGEST_EVENT; spec++) {
		const struct nps_db_column *column = start_column(in, spec);
		int64_t latest = column ? latest_start(in, spec, column) : 0;

		in->latest = NPS_MAX(in->latest, (uint64_t)NPS_MAX(latest, 0));
	}
}

/* Whether any table of the database counts from 1970, also one that is read later. */
static bool others_count_from_1970(struct nps_db_import *in)
{
	if (!in->searched && in->latest <= LONGEST_EVENT) {
		in->searched = true;
		for (const struct nps_db_table *const *family = nps_db_families; *family; family++)
			if (*family != nps_db_own_tables)
				find_latest(in, *family);
	}
	return in->latest > LONGEST_EVENT;
}

/*
 * Whether a start of 0 stands for one that was not recorded. It does where times count from 1970; where
 * they count from the start of the capture, 0 is a time. The other starts decide about a table; one whose
 * starts are all 0 goes by the other tables.
 */
static bool is_no_start(struct reader *r)
{
	int64_t latest;

	if (r->times == NOT_KNOWN) {
		latest = latest_start(r->in, r->spec, r->columns[r->first_time]);
		if (latest > 0)
			r->times = latest > (int64_t)LONGEST_EVENT ? SINCE_1970 : SINCE_START;
		else
			r->times = others_count_from_1970(r->in) ? SINCE_1970 : SINCE_START;
	}
	return r->times == SINCE_1970;
}

/* 1 if the row is out of order. */
static int row_read(struct reader *r, sqlite3_stmt *stmt)
{
	uint64_t key;
	int err = 0;

	if (r->first_time >= 0 && !time_is_known(stmt, r->first_time)) {
		r->losses.timeless++;
		return 0;
	}
	for (int i = 0; !err && i < r->n; i++)
		err = column_read(r, stmt, i);
	if (err)
		return err;
	if (r->task >= 0 && r->cells[r->task].u == NPS_NONE) {
		r->losses.unknown++;
		return 0;
	}
	if (r->first_time >= 0 && !r->cells[r->first_time].u && is_no_start(r)) {
		r->losses.timeless++;
		return 0;
	}
	if (r->last_time >= 0 && r->cells[r->last_time].u < r->cells[r->first_time].u) {
		r->cells[r->last_time] = r->cells[r->first_time];
		r->losses.backwards++;
	}
	if (r->last_time >= 0 && is_endless(&r->cells[r->first_time], &r->cells[r->last_time])) {
		r->losses.endless++;
		return 0;
	}
	key = r->order >= 0 ? r->cells[r->order].u : 0;
	if (key < r->before)
		return 1;
	r->before = key;
	if (r->first_time >= 0)
		r->in->latest = NPS_MAX(r->in->latest, r->cells[r->first_time].u);
	nps_progress__add(r->in->model->progress, 1);
	if (!(r->table->len & (NPS_TABLE_HOT - 1)))
		nps_index__cool(&r->in->tasks);
	return row_append(r);
}

/*
 * Reads all rows that SQL gives. 0; 1 if the order is not the model's; negative errno. *DAMAGED: SQLite
 * could not read on.
 */
static int read_rows(struct reader *r, const char *sql, int64_t last, bool *damaged)
{
	sqlite3_stmt *stmt = nps_db_source__prepare(&r->in->source, sql);
	int rc = SQLITE_DONE, err = nps_table__resize(r->table, 0);

	r->before = 0;
	r->losses = (struct losses){ 0 };
	if (stmt)
		sqlite3_bind_int64(stmt, 1, last);
	while (stmt && !err && (rc = nps_db_source__step(&r->in->source, stmt)) == SQLITE_ROW)
		err = row_read(r, stmt);
	sqlite3_finalize(stmt);
	*damaged = !stmt || (!err && rc != SQLITE_DONE);
	return rc == SQLITE_NOMEM ? -ENOMEM : err;
}

static void statement(const struct reader *r, bool sorted, char *sql, size_t size)
{
	int len = snprintf(sql, size, "SELECT ");

	for (int i = 0; i < r->n; i++)
		len += snprintf(sql + len, size - len, "%s\"%s\"", i ? "," : "", r->columns[i]->name);
	len += snprintf(sql + len, size - len, " FROM \"%s\" NOT INDEXED WHERE rowid<=?1", r->spec->name);
	if (!sorted)
		return;
	snprintf(sql + len, size - len,
		 r->spec->order == NPS_DB_BY_TASK ? " ORDER BY nps_row(\"%s\"),rowid"
						  : " ORDER BY CAST(\"%s\" AS INTEGER),rowid",
		 r->spec->sorted);
}

/* The last row before the damage. */
static int64_t last_good_row(struct reader *r)
{
	int64_t last = INT64_MIN;
	sqlite3_stmt *stmt;
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT rowid,* FROM \"%s\" NOT INDEXED", r->spec->name);
	stmt = nps_db_source__prepare(&r->in->source, sql);
	while (stmt && nps_db_source__step(&r->in->source, stmt) == SQLITE_ROW)
		last = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return last;
}

/* Sorting needs all rows, so it stops before a damaged one. */
static int read_sorted(struct reader *r, bool *damaged)
{
	char sql[2048];
	bool again;
	int err;

	statement(r, true, sql, sizeof(sql));
	err = read_rows(r, sql, INT64_MAX, damaged);
	if (*damaged && !err)
		err = read_rows(r, sql, last_good_row(r), &again);
	return err == 1 ? 0 : err; /* rows that are still out of order have no order */
}

static void count_losses(struct reader *r, bool damaged)
{
	struct nps_model *model = r->in->model;
	const char *name = r->spec->name;

	nps_model__lost(model, damaged, "rest of table %s, which is damaged", name);
	nps_model__lost(model, r->losses.timeless, "rows of table %s without a valid time", name);
	nps_model__lost(model, r->losses.unknown, "rows of table %s whose task is missing", name);
	nps_model__lost(model, r->losses.backwards, "rows of table %s that end before they begin", name);
	nps_model__lost(model, r->losses.endless, "rows of table %s that end too late for any capture", name);
	nps_model__lost(model, r->losses.cells, "cells of table %s with impossible values", name);
	nps_model__lost(model, r->losses.strings, "texts of table %s that are not in STRING_IDS", name);
}

int nps_db_table__read(struct nps_db_import *in, const struct nps_db_table *table)
{
	struct reader r = { .in = in, .spec = table, .table = nps_db_table__of(in->model, table) };
	bool damaged;
	char sql[2048];
	int err;

	if (!nps_db_source__has_table(&in->source, table->name))
		return 0;
	choose_columns(&r);
	if (!is_usable(&r)) {
		nps_model__lost(in->model, 1, "table %s, which lacks columns that it needs", table->name);
		return 0;
	}
	statement(&r, false, sql, sizeof(sql));
	err = read_rows(&r, sql, INT64_MAX, &damaged);
	if (err == 1)
		err = read_sorted(&r, &damaged);
	if (err)
		return err;
	count_losses(&r, damaged);
	if (is_derived(table) && (damaged || r.losses.timeless || r.losses.backwards || r.losses.endless))
		err = nps_table__resize(r.table, 0);
	return err;
}

/* --- tasks --- */

int64_t nps_db_index__build(struct nps_index *index, const struct nps_model *model, const uint32_t *keys,
			    size_t len)
{
	struct nps_pace pace = { .model = model };
	uint32_t low = UINT32_MAX, high = 0;
	int64_t twice = 0;
	int err = 0;

	for (size_t i = 0; i < len; i++) {
		low = NPS_MIN(low, keys[i]);
		high = NPS_MAX(high, keys[i]);
	}
	nps_index__init(index, model->tmpfd, len ? low : 0, high, len);
	for (size_t i = 0; !err && i < len; i++) {
		if (nps_index__get(index, keys[i]) == NPS_NONE)
			err = nps_index__put(index, keys[i], i);
		else
			twice++;
		nps_pace__step(&pace);
		if (!(i & (NPS_TABLE_HOT - 1)))
			nps_index__cool(index);
	}
	return err ? err : twice;
}

int nps_db_tasks__index(struct nps_db_import *in)
{
	const struct nps_task_table *task = &in->model->task;
	int64_t twice;

	nps_index__free(&in->tasks);
	twice = nps_db_index__build(&in->tasks, in->model, task->id, task->t.len);
	if (twice < 0)
		return twice;
	nps_model__lost(in->model, twice, "tasks with the globalTaskId of another task");
	return 0;
}

static int task_time_row(struct nps_db_import *in, sqlite3_stmt *stmt, uint32_t *before)
{
	struct nps_model *model = in->model;
	const char *source = (const char *)sqlite3_column_text(stmt, 1);
	uint64_t times[4];
	int64_t id, value;
	uint32_t task;
	size_t row;
	int err;

	task = whole(sqlite3_column_value(stmt, 0), &id) ? nps_index__get(&in->tasks, id) : NPS_NONE;
	if (task == NPS_NONE || !source || task == *before)
		return 0;
	*before = task;
	if (!strcmp(source, "device log"))
		model->task.source[task] = NPS_TIME_DEVICE_LOG;
	if (strcmp(source, "host bounds"))
		return 0;
	model->task.source[task] = NPS_TIME_HOST_BOUNDS;
	model->task.end[task] =
		model->task.start[task]; /* the length there is the least that Insight shows */
	for (int i = 0; i < 4; i++)
		times[i] = whole(sqlite3_column_value(stmt, 2 + i), &value) && value >= 0 ? (uint64_t)value
											  : UINT64_MAX;
	err = nps_table__add(&model->bounds.t, &row);
	if (err)
		return err;
	model->bounds.task[row] = task;
	model->bounds.start_low[row] = times[0];
	model->bounds.start_high[row] = times[1];
	model->bounds.end_low[row] = times[2];
	model->bounds.end_high[row] = times[3];
	return 0;
}

int nps_db_task_time__read(struct nps_db_import *in)
{
	uint32_t before = NPS_NONE;
	sqlite3_stmt *stmt;
	int rc = SQLITE_DONE, err = 0;

	if (!nps_db_source__has_table(&in->source, "NPUSCOPE_TASK_TIME"))
		return 0;
	stmt = nps_db_source__prepare(&in->source,
				      "SELECT globalTaskId,source,startLowNs,startHighNs,endLowNs,endHighNs "
				      "FROM NPUSCOPE_TASK_TIME ORDER BY nps_row(globalTaskId)");
	while (stmt && !err && (rc = nps_db_source__step(&in->source, stmt)) == SQLITE_ROW)
		err = task_time_row(in, stmt, &before);
	sqlite3_finalize(stmt);
	nps_model__lost(in->model, !stmt || (!err && rc != SQLITE_DONE),
			"rest of table NPUSCOPE_TASK_TIME, which is damaged");
	return err;
}
