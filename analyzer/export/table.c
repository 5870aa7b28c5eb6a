/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/table.h"

#include "export/counter_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FORMAT 0x1fU /* without the flags */

/* A column's cell, found once for all rows. */
struct table_cell {
	const char *base; /* in row 0 of its source, if there is one; NULL: the format needs none */
	size_t stride;
	int64_t least, most; /* of integers: others are not known */
	double per;
	uint8_t format, kind, source;
	bool blank, blank_no_row; /* what is not known; what has no row */
	const struct nps_csv_column *column;
};

struct nps_csv_rows {
	struct nps_csv *csv;
	void *ctx;
	unsigned int requested;
	size_t ncells, room; /* of a variant: in use, in all */
	struct table_cell *cells; /* of variant 0, then of the next */
	char *header;
};

/* --- cells ------------------------------------------------------------------------------------------- */

static inline uint64_t integer(const struct table_cell *c, const char *at)
{
	uint64_t value;

	if (c->kind == NPS_COLUMN_u32) /* most are */
		return *(const uint32_t *)at;
	if (c->kind == NPS_COLUMN_u8)
		return *(const uint8_t *)at;
	if (c->kind == NPS_COLUMN_u16)
		return *(const uint16_t *)at;
	memcpy(&value, at, sizeof(value)); /* also a pointer */
	return value;
}

static inline bool cell_is_known(const struct table_cell *c, uint64_t value)
{
	return (int64_t)value >= c->least && (int64_t)value <= c->most;
}

static void put_cell_number(struct nps_csv *csv, const struct table_cell *c, uint64_t value)
{
	if (c->kind == NPS_COLUMN_i64)
		nps_csv__i64(csv, (int64_t)value);
	else
		nps_csv__u64(csv, value);
}

static void put_cell_device(struct nps_csv *csv, uint32_t device)
{
	if (device == NPS_NONE)
		nps_csv__lit(csv, "host");
	else
		nps_csv__u64(csv, device);
}

static void put_cell_hex(struct nps_csv *csv, uint64_t value)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);

	nps_csv__cell(csv, at, (size_t)snprintf(at, NPS_CSV_CELL, "0x%" PRIx64, value));
}

static inline void put_integer(struct nps_csv *csv, const struct table_cell *c, uint64_t value)
{
	switch (c->format) {
	case NPS_CSV_NUMBER:
	case NPS_CSV_ID:
		put_cell_number(csv, c, value);
		break;
	case NPS_CSV_DEVICE:
		put_cell_device(csv, (uint32_t)value);
		break;
	case NPS_CSV_NPU:
		nps_csv__npu(csv, (uint32_t)value);
		break;
	case NPS_CSV_PID:
		nps_csv__u64(csv, value >> 32);
		break;
	case NPS_CSV_TID:
		nps_csv__u64(csv, value & UINT32_MAX);
		break;
	case NPS_CSV_HEX:
		put_cell_hex(csv, value);
		break;
	case NPS_CSV_TEXT:
		nps_csv__text(csv, (uint32_t)value);
		break;
	case NPS_CSV_SHAPES:
		nps_csv__text_cell(csv, (uint32_t)value, NPS_CSV_QUOTED);
		break;
	case NPS_CSV_WORD:
		nps_csv__lit(csv, (const char *)(uintptr_t)value);
		break;
	case NPS_CSV_TIME:
		nps_csv__time(csv, value);
		break;
	case NPS_CSV_MILLI:
		nps_csv__milli(csv, value);
		break;
	case NPS_CSV_SHORT:
		nps_csv__short(csv, value);
		break;
	default:
		nps_csv__span(csv, value);
	}
}

/* NaN: not known. */
static inline double cell_quotient(const struct table_cell *c, const char *at)
{
	uint64_t integral;
	double value;

	if (c->kind == NPS_COLUMN_f64) {
		memcpy(&value, at, sizeof(value));
		return value / c->per;
	}
	integral = integer(c, at);
	if (!cell_is_known(c, integral))
		return NPS_NAN;
	return (c->kind == NPS_COLUMN_i64 ? (double)(int64_t)integral : (double)integral) / c->per;
}

static void put_float_sum(struct nps_csv *csv, double value)
{
	if (csv->ex->generation == NPS_GENERATION_A || value < 0)
		nps_csv__repr(csv, value);
	else
		nps_csv__milli(csv, nps_thousandths(value));
}

static void put_quotient(struct nps_csv *csv, unsigned int format, double value)
{
	switch (format) {
	case NPS_CSV_FIXED:
		nps_csv__milli(csv, nps_thousandths(value));
		break;
	case NPS_CSV_DECIMAL:
		nps_counter__cell(csv, value);
		break;
	case NPS_CSV_FINE:
		nps_counter__fine(csv, value);
		break;
	case NPS_CSV_REPR:
		nps_csv__repr(csv, value);
		break;
	case NPS_CSV_SUM:
		put_float_sum(csv, value);
		break;
	case NPS_CSV_COUNT:
		nps_csv__u64(csv, value > 0 && value < 1e18 ? (uint64_t)llrint(value) : 0);
		break;
	default: /* 0 is an integer */
		if (value == 0)
			nps_csv__lit(csv, "0");
		else if (format == NPS_CSV_REPR_INT_0)
			nps_csv__repr(csv, value);
		else if (format == NPS_CSV_SUM_INT_0)
			put_float_sum(csv, value);
		else
			nps_counter__cell(csv, value);
	}
}

/* False: the content of the cell is not known. */
static inline bool put_known(struct nps_csv *csv, const struct table_cell *c, const struct nps_csv_row *row,
			     void *ctx)
{
	size_t number = row->at[c->source];
	const char *at;
	uint64_t integral;
	double value;

	if (!c->base) {
		if (c->format == NPS_CSV_PUT)
			c->column->put(csv, ctx, row);
		else
			nps_csv__lit(csv, c->column->literal);
		return true;
	}
	if (number == NPS_CSV_NO_ROW)
		return false;
	at = c->base + number * c->stride;
	if (c->format < NPS_CSV_FIXED) {
		integral = integer(c, at);
		if (!cell_is_known(c, integral))
			return false;
		put_integer(csv, c, integral);
		return true;
	}
	value = cell_quotient(c, at);
	if (isnan(value))
		return false;
	put_quotient(csv, c->format, value);
	return true;
}

void nps_csv_rows__put(struct nps_csv_rows *rows, const struct nps_csv_row *row)
{
	const struct table_cell *c = rows->cells + row->variant * rows->room, *end = c + rows->ncells;
	struct nps_csv *csv = rows->csv;
	void *ctx = rows->ctx;

	nps_csv__row(csv);
	for (; c < end; c++) {
		if (put_known(csv, c, row, ctx))
			continue;
		if (c->blank || (c->blank_no_row && row->at[c->source] == NPS_CSV_NO_ROW))
			nps_csv__empty(csv);
		else
			nps_csv__lit(csv, "N/A");
	}
	nps_csv__end(csv);
}

/* --- columns ----------------------------------------------------------------------------------------- */

/* Columns of the model also mark which numbers are texts and times. */
static uint8_t storage(uint8_t kind)
{
	return kind == NPS_COLUMN_text ? NPS_COLUMN_u32 : kind == NPS_COLUMN_time ? NPS_COLUMN_u64 : kind;
}

static size_t size_of(uint8_t storage)
{
	return storage == NPS_COLUMN_u8	   ? 1
	       : storage == NPS_COLUMN_u16 ? 2
	       : storage == NPS_COLUMN_u32 ? 4
					   : 8;
}

static bool is_thousandths(unsigned int format)
{
	return format >= NPS_CSV_TIME && format <= NPS_CSV_SPAN;
}

/* 0, or -EINVAL: the column does not fit its source. */
static int find_cell(const struct nps_csv_column *column, const struct nps_csv_source *sources,
		     struct table_cell *cell)
{
	const struct nps_csv_source *source = &sources[column->source % NPS_CSV_SOURCES];

	*cell = (struct table_cell){ .format = column->format & FORMAT,
				     .kind = storage(column->kind),
				     .source = column->source,
				     .least = INT64_MIN,
				     .most = INT64_MAX,
				     .per = column->per == 0 ? 1 : column->per,
				     .blank = column->format & NPS_CSV_BLANK,
				     .blank_no_row = column->format & NPS_CSV_BLANK_NO_ROW,
				     .column = column };
	if (column->format & NPS_CSV_0_NONE)
		cell->least = 1;
	else if (cell->kind == NPS_COLUMN_i64)
		cell->least = is_thousandths(cell->format) ? 0 : NPS_NULL + 1;
	if (cell->format == NPS_CSV_ID || cell->format == NPS_CSV_TEXT)
		cell->most = NPS_NO_ID - 1;
	if (column->source >= NPS_CSV_SOURCES)
		return -EINVAL;
	if (cell->format == NPS_CSV_LITERAL || cell->format == NPS_CSV_PUT)
		return 0;
	if (source->table) {
		if (column->offset >= source->table->ncolumns ||
		    storage(source->table->columns[column->offset].kind) != cell->kind)
			return -EINVAL;
		cell->base = source->table->len ? nps_table__cells(source->table, column->offset) : "";
		cell->stride = size_of(cell->kind);
		return 0;
	}
	if (source->size ? column->offset + size_of(cell->kind) > source->size : !source->structs)
		return -EINVAL;
	cell->base = source->structs ? (const char *)source->structs + column->offset : "";
	cell->stride = source->size;
	return 0;
}

struct layout {
	const struct nps_csv_source *sources;
	unsigned int when; /* bits that hold */
	bool msprof, exists; /* exists: the latest column */
	char *header; /* its end */
};

static const char *title(const struct nps_csv_column *column, bool msprof)
{
	return msprof && column->msprof ? column->msprof : column->title;
}

static int rows_add_column(struct nps_csv_rows *rows, struct layout *layout,
			   const struct nps_csv_column *column)
{
	bool exists = !(column->when & ~layout->when);
	struct table_cell cell;
	int err;

	if (column->title)
		layout->exists = exists;
	if (!exists || !layout->exists)
		return 0;
	err = find_cell(column, layout->sources, &cell);
	if (err)
		return err;
	if (!column->title) {
		if (column->variant >= NPS_CSV_VARIANTS)
			return -EINVAL;
		rows->cells[column->variant * rows->room + rows->ncells - 1] = cell;
		return 0;
	}
	if (rows->ncells)
		*layout->header++ = ',';
	layout->header = stpcpy(layout->header, title(column, layout->msprof));
	for (size_t variant = 0; variant < NPS_CSV_VARIANTS; variant++)
		rows->cells[variant * rows->room + rows->ncells] = cell;
	rows->ncells++;
	return 0;
}

static size_t titles_len(const struct nps_csv_columns *columns, bool msprof)
{
	size_t len = 0;

	for (size_t i = 0; i < columns->len; i++)
		len += columns->at[i].title ? strlen(title(&columns->at[i], msprof)) + 1 : 0;
	return len;
}

static int lay_out(struct nps_csv_rows *rows, const struct nps_export *ex, const struct nps_csv_table *table,
		   const struct nps_csv_input *input)
{
	struct nps_csv_source sources[NPS_CSV_SOURCES];
	bool msprof = ex->model->layout == NPS_LAYOUT_MSPROF;
	struct layout layout = { .sources = sources, .msprof = msprof };
	int err = 0;

	layout.when = input->when | (ex->generation == NPS_GENERATION_A ? NPS_CSV_A : NPS_CSV_B) |
		      (msprof ? NPS_CSV_MSPROF : NPS_CSV_TORCH);
	rows->room = table->columns.len + input->more.len;
	rows->cells = calloc(rows->room * NPS_CSV_VARIANTS, sizeof(*rows->cells));
	rows->header = calloc(1, titles_len(&table->columns, msprof) + titles_len(&input->more, msprof) + 1);
	if (!rows->cells || !rows->header)
		return -ENOMEM;
	layout.header = rows->header;
	memcpy(sources, input->sources, sizeof(sources));
	if (table->table)
		sources[0].table = (const struct nps_table *)((const char *)ex->model + table->table);
	for (size_t i = 0; !err && i < table->columns.len; i++)
		err = rows_add_column(rows, &layout, &table->columns.at[i]);
	for (size_t i = 0; !err && i < input->more.len; i++)
		err = rows_add_column(rows, &layout, &input->more.at[i]);
	return err;
}

static void rows_release(struct nps_csv_rows *rows)
{
	free(rows->cells);
	free(rows->header);
	free(rows);
}

int nps_csv_rows__open(struct nps_csv_rows **rows, const struct nps_export *ex, int dirfd,
		       const struct nps_csv_table *table, const struct nps_csv_input *input)
{
	static const struct nps_csv_input none;
	bool msprof = ex->model->layout == NPS_LAYOUT_MSPROF;
	struct nps_csv_file file = { .stem = msprof && table->msprof ? table->msprof : table->stem,
				     .stamped = msprof && !table->unstamped,
				     .crlf = table->crlf && !msprof && ex->generation == NPS_GENERATION_A };
	struct nps_csv_rows *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	input = input ? input : &none;
	r->ctx = input->ctx;
	r->requested = table->requested;
	err = lay_out(r, ex, table, input);
	file.header = r->header;
	r->csv = err ? NULL : nps_csv__new(ex, dirfd, &file);
	if (!r->csv) {
		rows_release(r);
		return err ? err : -ENOMEM;
	}
	*rows = r;
	return 0;
}

int nps_csv_rows__close(struct nps_csv_rows *rows, int err)
{
	int written;

	if (!err && !rows->csv->open)
		nps_csv__without_rows(rows->csv, rows->requested);
	written = nps_csv__close(rows->csv);
	rows_release(rows);
	return err ? err : written;
}

/* --- all rows ---------------------------------------------------------------------------------------- */

static size_t rows_count(const struct nps_export *ex, const struct nps_csv_table *table,
			 const struct nps_csv_input *input)
{
	const struct nps_table *t = table->table ? (const void *)((const char *)ex->model + table->table)
						 : input->sources[0].table;

	return t && !input->order ? t->len : input->len;
}

int nps_csv_table__write(const struct nps_export *ex, int dirfd, const struct nps_csv_table *table,
			 const struct nps_csv_input *input)
{
	static const struct nps_csv_input none;
	struct nps_csv_row row = { 0 };
	struct nps_csv_rows *rows;
	int err = nps_csv_rows__open(&rows, ex, dirfd, table, input);
	size_t len;

	if (err)
		return err;
	input = input ? input : &none;
	if (input->next) {
		while (!rows->csv->err && input->next(input->ctx, &row))
			nps_csv_rows__put(rows, &row);
		return nps_csv_rows__close(rows, 0);
	}
	len = rows_count(ex, table, input);
	for (size_t i = 0; !rows->csv->err && i < len; i++) {
		row.at[0] = input->order ? input->order[i] : i;
		nps_csv_rows__put(rows, &row);
	}
	return nps_csv_rows__close(rows, 0);
}

int nps_csv_table__write_structs(const struct nps_export *ex, int dirfd, const struct nps_csv_table *table,
				 const struct nps_vec *rows)
{
	return nps_csv_table__write(ex, dirfd, table,
				    &(struct nps_csv_input){ .sources[0] = { NULL, rows->data, rows->elem },
							     .len = rows->len });
}

int nps_csv_tables__write(const struct nps_export *ex, int dirfd, const struct nps_csv_table *tables,
			  size_t n)
{
	int err = 0;

	for (size_t i = 0; !err && i < n; i++)
		err = nps_csv_table__write(ex, dirfd, &tables[i], NULL);
	return err;
}

int nps_csv__write_each(const struct nps_export *ex, int dirfd, nps_csv_write_fn *const *tables, size_t n)
{
	int err = 0;

	for (size_t i = 0; !err && i < n; i++)
		err = tables[i] ? tables[i](ex, dirfd) : 0;
	return err;
}
