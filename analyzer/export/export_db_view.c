/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model's rows as virtual tables: INSERT ... SELECT copies them inside of SQLite, which is faster than
 * binding the values of each row.
 */
#include "export/export_db.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a cell becomes a value: the kinds of numbers first. */
enum op {
	OP_U8 = NPS_COLUMN_u8,
	OP_U16 = NPS_COLUMN_u16,
	OP_U32 = NPS_COLUMN_u32,
	OP_U64 = NPS_COLUMN_u64,
	OP_I64 = NPS_COLUMN_i64,
	OP_F64 = NPS_COLUMN_f64,
	OP_ID = NPS_COLUMN_text, /* of STRING_IDS; unknown: N/A */
	OP_TIME = NPS_COLUMN_time,
	OP_ID_NULL,
	OP_ID_NO_ID,
	OP_ID_OP,
	OP_TEXT,
	OP_TIME_TEXT,
	OP_TASK,
	OP_ROW,
	OP_SOURCE,
	OP_F64_OR_0,
	OP_TASK_END,
	OP_COMM_END,
	OP_START_BOUND,
	OP_END_BOUND
};

struct vtab {
	sqlite3_vtab base;
	const struct nps_db_view *view;
};

struct view_cursor {
	sqlite3_vtab_cursor base;
	struct nps_db_fill *fill;
	const struct nps_model *model;
	enum nps_db_range range;
	struct nps_pace pace;
	size_t row, len;
	size_t bound; /* first row of `bounds` that is not before the task */
	uint32_t na; /* id of N/A, NPS_NONE: not looked up yet */
	struct column {
		const void *cells;
		uint8_t op;
	} columns[NPS_DB_MAX_COLUMNS];
};

static enum op column_op(const struct nps_model *model, const struct nps_db_table *spec,
			 const struct nps_db_column *column)
{
	switch ((enum nps_db_value)column->value) {
	case NPS_DB_TIME_TEXT:
		return OP_TIME_TEXT;
	case NPS_DB_STRING:
		return OP_ID;
	case NPS_DB_STRING_NULL:
		return OP_ID_NULL;
	case NPS_DB_STRING_NO_ID:
		return OP_ID_NO_ID;
	case NPS_DB_STRING_OP:
		return OP_ID_OP;
	case NPS_DB_TEXT:
		return OP_TEXT;
	case NPS_DB_TASK:
		return OP_TASK;
	case NPS_DB_ROW:
		return OP_ROW;
	case NPS_DB_SOURCE:
		return OP_SOURCE;
	case NPS_DB_BOUND:
		return column->cell <= NPS_ORDINAL(bounds, start_high) ? OP_START_BOUND : OP_END_BOUND;
	case NPS_DB_NUMBER_OR_0:
		return OP_F64_OR_0;
	case NPS_DB_TASK_END:
		return OP_TASK_END;
	case NPS_DB_COMM_END:
		return OP_COMM_END;
	case NPS_DB_NUMBER:
		break;
	}
	return (enum op)nps_db_column__kind(model, spec, column);
}

static struct column column_bind(const struct nps_model *model, const struct nps_db_table *spec,
				 const struct nps_db_column *column)
{
	const struct nps_table *table = column->value == NPS_DB_BOUND ? &model->bounds.t
								      : nps_db_table__of(model, spec);
	struct column c = { .op = column_op(model, spec, column) };
	uint8_t cell = nps_db_column__cell(spec, column);

	/* A column without a cell of its own does not read the one of this pointer. */
	c.cells = nps_table__cells(table, cell == NPS_DB_NO_CELL ? 0 : cell);
	return c;
}

static int connect(sqlite3 *handle, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
		   char **error)
{
	const struct nps_db_view *view = aux;
	uint8_t columns[NPS_DB_MAX_COLUMNS];
	int n = nps_db_table__columns(view->table, view->fill->generation, columns), len, rc;
	struct vtab *new = calloc(1, sizeof(*new));
	char sql[16 + NPS_DB_MAX_COLUMNS * 5];

	(void)argc, (void)argv, (void)error;
	if (!new)
		return SQLITE_NOMEM;
	len = snprintf(sql, sizeof(sql), "CREATE TABLE x(");
	for (int i = 0; i < n; i++)
		len += snprintf(sql + len, sizeof(sql) - len, "c%d%c", i + 1, i + 1 < n ? ',' : ')');
	rc = sqlite3_declare_vtab(handle, sql);
	if (rc) {
		free(new);
		return rc;
	}
	new->view = view;
	*vtab = &new->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *vtab)
{
	free(vtab);
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	(void)vtab;
	info->estimatedCost = 1e6; /* there is one way: all rows in order */
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **cursor)
{
	const struct nps_db_view *view = ((struct vtab *)base)->view;
	struct nps_db_fill *fill = view->fill;
	const struct nps_table *table = nps_db_table__of(fill->model, view->table);
	struct view_cursor *new = calloc(1, sizeof(*new));
	uint8_t columns[NPS_DB_MAX_COLUMNS];
	int n = nps_db_table__columns(view->table, fill->generation, columns);

	if (!new)
		return SQLITE_NOMEM;
	new->fill = fill;
	new->model = fill->model;
	new->range = view->table->range;
	new->len = table->len;
	new->pace.model = fill->model;
	new->na = NPS_NONE;
	for (int i = 0; i < n; i++)
		new->columns[i] = column_bind(fill->model, view->table, &view->table->columns[columns[i]]);
	*cursor = &new->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	free(cursor);
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *name, int argc, sqlite3_value **argv)
{
	struct view_cursor *cursor = (struct view_cursor *)base;

	(void)index, (void)name, (void)argc, (void)argv;
	cursor->row = cursor->bound = 0;
	return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
	struct view_cursor *cursor = (struct view_cursor *)base;

	cursor->row++;
	nps_pace__step(&cursor->pace);
	return SQLITE_OK;
}

static int eof(sqlite3_vtab_cursor *base)
{
	const struct view_cursor *cursor = (const struct view_cursor *)base;

	return cursor->row >= cursor->len;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
	*id = ((struct view_cursor *)base)->row;
	return SQLITE_OK;
}

static void u64_value(sqlite3_context *context, uint64_t value)
{
	if (value <= INT64_MAX)
		sqlite3_result_int64(context, value);
	else
		sqlite3_result_null(context); /* open, and too large for the database */
}

static void time_text(sqlite3_context *context, uint64_t ns)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = '0' + ns % 10;
		ns /= 10;
	} while (ns);
	sqlite3_result_text(context, digits + at, sizeof(digits) - at, SQLITE_TRANSIENT);
}

static void id_value(sqlite3_context *context, struct view_cursor *cursor, uint32_t text)
{
	uint32_t id;

	if (text != NPS_NONE) {
		id = nps_db_ids__get(&cursor->fill->ids, cursor->range, text);
	} else {
		if (cursor->na == NPS_NONE)
			cursor->na = nps_db_ids__get(&cursor->fill->ids, cursor->range, cursor->model->na);
		id = cursor->na;
	}
	if (cursor->fill->ids.err)
		sqlite3_result_error_nomem(context);
	else
		sqlite3_result_int64(context, id);
}

static void known_id(sqlite3_context *context, struct view_cursor *cursor, uint32_t text, enum op op)
{
	uint32_t id;

	if (text != NPS_NONE) {
		id = op == OP_ID_OP ? nps_db_ids__find(&cursor->fill->ids, NPS_DB_MSPROF, text) : NPS_NONE;
		if (id == NPS_NONE)
			id_value(context, cursor, text);
		else
			sqlite3_result_int64(context, id);
	} else if (op == OP_ID_NO_ID) {
		sqlite3_result_int64(context, NPS_NO_ID);
	} else {
		sqlite3_result_null(context);
	}
}

static void put_source(sqlite3_context *context, unsigned int value)
{
	static const char *const names[] = { [NPS_TIME_IMPORTED] = "profiler",
					     [NPS_TIME_DEVICE_LOG] = "device log",
					     [NPS_TIME_HOST_BOUNDS] = "host bounds" };

	if (value < NPS_ARRAY_SIZE(names))
		sqlite3_result_text(context, names[value], -1, SQLITE_STATIC);
}

/* Without a row in `bounds` the task's own time is exact. */
static void put_bound(sqlite3_context *context, struct view_cursor *cursor, const struct column *column)
{
	const struct nps_bounds_table *bounds = &cursor->model->bounds;
	const uint64_t *own = column->op == OP_START_BOUND ? cursor->model->task.start
							   : cursor->model->task.end;

	while (cursor->bound < bounds->t.len && bounds->task[cursor->bound] < cursor->row)
		cursor->bound++;
	if (cursor->bound < bounds->t.len && bounds->task[cursor->bound] == cursor->row)
		u64_value(context, ((const uint64_t *)column->cells)[cursor->bound]);
	else
		u64_value(context, own[cursor->row]);
}

static void task_id(sqlite3_context *context, const struct view_cursor *cursor, uint32_t row)
{
	if (row < cursor->model->task.t.len)
		sqlite3_result_int64(context, cursor->model->task.id[row]);
	else
		sqlite3_result_null(context);
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int i)
{
	struct view_cursor *cursor = (struct view_cursor *)base;
	const struct column *c = &cursor->columns[i];
	size_t row = cursor->row;
	const uint32_t *u32 = c->cells;
	int64_t signed_value;
	double number;

	switch ((enum op)c->op) {
	case OP_U8:
		sqlite3_result_int(context, ((const uint8_t *)c->cells)[row]);
		break;
	case OP_U16:
		sqlite3_result_int(context, ((const uint16_t *)c->cells)[row]);
		break;
	case OP_U32:
		sqlite3_result_int64(context, u32[row]);
		break;
	case OP_U64:
	case OP_TIME:
		u64_value(context, ((const uint64_t *)c->cells)[row]);
		break;
	case OP_I64:
		signed_value = ((const int64_t *)c->cells)[row];
		if (signed_value == NPS_NULL)
			sqlite3_result_null(context);
		else
			sqlite3_result_int64(context, signed_value);
		break;
	case OP_F64:
		sqlite3_result_double(context, ((const double *)c->cells)[row]); /* NaN is NULL to SQLite */
		break;
	case OP_F64_OR_0:
		number = ((const double *)c->cells)[row];
		sqlite3_result_double(context, number == number ? number : 0);
		break;
	case OP_TASK_END:
		u64_value(context, nps_model__task_end(cursor->model, row));
		break;
	case OP_COMM_END:
		u64_value(context, nps_model__comm_end(cursor->model, row));
		break;
	case OP_ID:
		id_value(context, cursor, u32[row]);
		break;
	case OP_ID_OP:
		known_id(context, cursor, u32[row] == NPS_NONE ? cursor->model->na : u32[row], c->op);
		break;
	case OP_ID_NULL:
	case OP_ID_NO_ID:
		known_id(context, cursor, u32[row], c->op);
		break;
	case OP_TEXT:
		if (u32[row] == NPS_NONE)
			sqlite3_result_null(context);
		else
			sqlite3_result_text(context, nps_model__text(cursor->model, u32[row]), -1,
					    SQLITE_STATIC);
		break;
	case OP_TIME_TEXT:
		time_text(context, ((const uint64_t *)c->cells)[row]);
		break;
	case OP_TASK:
		task_id(context, cursor, u32[row]);
		break;
	case OP_ROW:
		sqlite3_result_int64(context, row);
		break;
	case OP_SOURCE:
		put_source(context, ((const uint8_t *)c->cells)[row]);
		break;
	case OP_START_BOUND:
	case OP_END_BOUND:
		put_bound(context, cursor, c);
		break;
	}
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.xConnect = connect, /* no xCreate: each module is one table that is there by itself */
	.xBestIndex = best_index,
	.xDisconnect = disconnect,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = cursor_next,
	.xEof = eof,
	.xColumn = column,
	.xRowid = rowid,
};

void nps_db_view__register(struct nps_db_view *view)
{
	char name[64];

	if (view->fill->db.err)
		return;
	snprintf(name, sizeof(name), "v_%s", view->table->name);
	if (sqlite3_create_module(view->fill->db.handle, name, &module, view))
		view->fill->db.err = -ENOMEM;
}

/* The values that keys and indexes are made of. */
static uint64_t column_key(const struct nps_model *model, const struct column *c, size_t row)
{
	const uint32_t *u32 = c->cells;

	switch ((enum op)c->op) {
	case OP_U32:
		return u32[row];
	case OP_U64:
	case OP_TIME:
		return ((const uint64_t *)c->cells)[row];
	case OP_TASK:
		return u32[row] < model->task.t.len ? model->task.id[u32[row]] : 0;
	default:
		return row;
	}
}

bool nps_db_view__ascends(const struct nps_db_view *view, const struct nps_db_column *column, bool strictly)
{
	const struct nps_model *model = view->fill->model;
	const struct nps_table *table = nps_db_table__of(model, view->table);
	struct column c = column_bind(model, view->table, column);
	struct nps_pace pace = { .model = model };
	uint64_t before = 0;

	for (size_t row = 0; row < table->len; row++) {
		uint64_t key = column_key(model, &c, row);

		if (row && (key < before || (strictly && key == before)))
			return false;
		before = key;
		nps_pace__step(&pace);
	}
	return true;
}
