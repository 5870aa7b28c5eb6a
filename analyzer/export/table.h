/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CSV tables as data: an array of columns, each with its title, the cell that it shows and the format. One
 * walk writes the header and the rows, so that both have the same columns in the same order.
 *
 * A cell lies in a source: a table of the model, or an array of C structs, which may be a single struct
 * that is filled anew for each row. A table whose rows are those of one model table needs no code at all:
 *
 * 	static const struct nps_csv_column columns[] = {
 * 		NPS_CSV_DEVICE_ID(dp),
 * 		NPS_CSV_COL("Timestamp(us)", TIME, dp, timestamp),
 * 		NPS_CSV_COL("Cached Buffer Size", NUMBER, dp, size),
 * 	};
 * 	static const struct nps_csv_table table = { "dp", NPS_CSV_OF(dp, columns) };
 *
 * 	return nps_csv_table__write(ex, dirfd, &table, NULL);
 */
#ifndef NPS_CSV_TABLE_H
#define NPS_CSV_TABLE_H

#include "export/csv_writer.h"

#include <stddef.h>

#define NPS_CSV_SOURCES 6
#define NPS_CSV_VARIANTS 4
#define NPS_CSV_NO_ROW SIZE_MAX /* the source has no row for this one: its cells are not known */

/* Of a format: what means "not known" beside NPS_NULL and NaN, and what is written instead of N/A. */
#define NPS_CSV_BLANK_NO_ROW 0x20U /* nothing, if its source has no row for this one */
#define NPS_CSV_0_NONE 0x40U /* 0 */
#define NPS_CSV_BLANK 0x80U /* nothing */

/* What is not known is N/A, unless the format is named otherwise. */
enum nps_csv_format {
	NPS_CSV_NUMBER,
	NPS_CSV_ID, /* NPS_NO_ID is not known */
	NPS_CSV_DEVICE, /* NPS_NONE: host */
	NPS_CSV_NPU, /* NPU:0 */
	NPS_CSV_PID, /* upper half of a gtid */
	NPS_CSV_TID, /* lower half of a gtid */
	NPS_CSV_HEX, /* 0x1f */
	NPS_CSV_TEXT, /* of the model */
	NPS_CSV_SHAPES, /* the same in quotes that belong to it */
	NPS_CSV_WORD, /* C string, short and without anything that needs quotes */
	/* Whole thousandths, such as ns as us; a negative one is not known: */
	NPS_CSV_TIME, /* 5.000 with a TAB, which keeps spreadsheets from rounding it */
	NPS_CSV_MILLI, /* 5.000 */
	NPS_CSV_SHORT, /* 5.0 */
	NPS_CSV_SPAN, /* SHORT in generation A, MILLI in B */
	/* Any number divided by `per`: */
	NPS_CSV_FIXED, /* 5.000 */
	NPS_CSV_DECIMAL, /* 5.0, rounded to thousandths */
	NPS_CSV_DECIMAL_INT_0, /* the same, but 0 is an integer */
	NPS_CSV_FINE, /* rounded to 9 decimals */
	NPS_CSV_REPR, /* a float as Python writes it */
	NPS_CSV_REPR_INT_0, /* the same, but 0 is an integer */
	NPS_CSV_SUM, /* as Python prints a sum of floats in generation A, FIXED in B */
	NPS_CSV_SUM_INT_0, /* the same, but 0 is an integer: that of an empty list */
	NPS_CSV_COUNT, /* 5, rounded; what no count can be is 0 */
	/* Without a cell: */
	NPS_CSV_LITERAL, /* the column's `literal` */
	NPS_CSV_PUT, /* the column's `put` writes it */

	NPS_CSV_NUMBER_NOT_0 = NPS_CSV_NUMBER | NPS_CSV_0_NONE,
	NPS_CSV_NUMBER_OR_BLANK = NPS_CSV_NUMBER | NPS_CSV_BLANK,
	NPS_CSV_TEXT_OR_BLANK = NPS_CSV_TEXT | NPS_CSV_BLANK,
	NPS_CSV_TIME_NOT_0 = NPS_CSV_TIME | NPS_CSV_0_NONE,
	NPS_CSV_TIME_OR_BLANK = NPS_CSV_TIME | NPS_CSV_BLANK,
	NPS_CSV_SHORT_OR_BLANK = NPS_CSV_SHORT | NPS_CSV_BLANK,
	NPS_CSV_SPAN_OR_BLANK = NPS_CSV_SPAN | NPS_CSV_BLANK,
	NPS_CSV_REPR_OR_BLANK = NPS_CSV_REPR | NPS_CSV_BLANK,
	/* N/A in rows that have one in their source, blank in the others: */
	NPS_CSV_TEXT_OF_ROW = NPS_CSV_TEXT | NPS_CSV_BLANK_NO_ROW,
	NPS_CSV_SUM_OF_ROW = NPS_CSV_SUM | NPS_CSV_BLANK_NO_ROW,
	NPS_CSV_SUM_INT_0_OF_ROW = NPS_CSV_SUM_INT_0 | NPS_CSV_BLANK_NO_ROW
};

/* Where a column exists: all bits must hold. The higher ones are conditions of a table, see nps_csv_input. */
#define NPS_CSV_A 0x1U /* generation */
#define NPS_CSV_B 0x2U
#define NPS_CSV_TORCH 0x4U /* layout */
#define NPS_CSV_MSPROF 0x8U
#define NPS_CSV_IF(n) (0x10U << (n))

/* A row of the table that is written: rows of the sources, and which of a column's cells are its. */
struct nps_csv_row {
	size_t at[NPS_CSV_SOURCES];
	unsigned int variant;
};

struct nps_csv_column {
	const char *title; /* NULL: no column, but the cell that the column above has in rows of `variant` */
	uint8_t format; /* enum nps_csv_format */
	uint8_t kind; /* enum nps_column_kind: how the cell is stored */
	uint8_t source; /* index in nps_csv_input.sources */
	uint8_t variant; /* 0: in rows of all variants that have no cell of their own */
	uint16_t offset; /* of a table of the model: number of its column; of a struct: bytes */
	uint16_t when; /* NPS_CSV_A, ... */
	double per; /* 0: 1 */
	const char *msprof; /* the title in msprof's layout; NULL: title */
	const char *literal;
	void (*put)(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row);
};

struct nps_csv_table {
	const char *stem; /* of the file's name */
	const char *msprof; /* the same in msprof's layout; NULL: stem */
	bool unstamped; /* without the stamp and the slices of msprof's layout there, too */
	bool crlf; /* the torch profiler's rows end so in generation A */
	uint8_t requested; /* NPS_REQUESTED_*: then there is a file even without rows */
	struct nps_csv_columns {
		const struct nps_csv_column *at;
		size_t len;
	} columns;
	size_t table; /* the model table that is source 0: its offset in the model; 0: none is */
};

/* An array of structs, or, if TABLE is set, a table of the model. Neither moves while rows are written. */
struct nps_csv_source {
	const struct nps_table *table;
	const void *structs;
	size_t size; /* bytes of a struct; 0: there is only one, in which every row has its cells */
};

/* What is known when a table is written. Zeros: the rows of the table's own source in their order. */
struct nps_csv_input {
	unsigned int when; /* NPS_CSV_IF bits that hold */
	struct nps_csv_columns more; /* columns behind those of the table */
	struct nps_csv_source sources[NPS_CSV_SOURCES]; /* all but the table's own */
	size_t len; /* rows of source 0, if that is an array of structs; or of `order` */
	const uint32_t *order; /* rows of source 0 in the order of writing; NULL: as they are */
	/*
	 * Instead of len and order: fills ROW, which has the row before (at first 0). False: there is none.
	 */
	bool (*next)(void *ctx, struct nps_csv_row *row);
	void *ctx; /* of NEXT and of the columns' PUT */
};

/*
 * Writes all rows of TABLE into a file in DIRFD; none without rows. INPUT may be NULL. 0, -EINVAL: a column
 * does not fit its source, or another negative errno.
 */
int nps_csv_table__write(const struct nps_export *ex, int dirfd, const struct nps_csv_table *table,
			 const struct nps_csv_input *input);

/* The same of a table whose rows are the structs of ROWS. */
int nps_csv_table__write_structs(const struct nps_export *ex, int dirfd, const struct nps_csv_table *table,
				 const struct nps_vec *rows);

/* Writes N tables whose rows are those of their own sources, one after the other. 0 or negative errno. */
int nps_csv_tables__write(const struct nps_export *ex, int dirfd, const struct nps_csv_table *tables,
			  size_t n);

/* A function that writes one or more tables into a directory, as those above. 0 or negative errno. */
typedef int nps_csv_write_fn(const struct nps_export *ex, int dirfd);

/* Calls N of them until one fails; NULL: none. 0 or negative errno. */
int nps_csv__write_each(const struct nps_export *ex, int dirfd, nps_csv_write_fn *const *tables, size_t n);

/* The same row by row, for those that come out of a walk over something else. */
struct nps_csv_rows;

/* TABLE and what INPUT has pointers to stay valid until the rows are closed. 0 or negative errno. */
int nps_csv_rows__open(struct nps_csv_rows **rows, const struct nps_export *ex, int dirfd,
		       const struct nps_csv_table *table, const struct nps_csv_input *input);

/* Errors are kept for nps_csv_rows__close(). */
void nps_csv_rows__put(struct nps_csv_rows *rows, const struct nps_csv_row *row);

/* Finishes the file and frees ROWS. ERR, what the caller met, or the first error of writing. */
int nps_csv_rows__close(struct nps_csv_rows *rows, int err);

/* --- columns: the format decides which types a cell may have, others do not compile ------ */

/* clang-format off */
#define NPS_CSV_INTEGER(cell) _Generic((cell), uint8_t: NPS_COLUMN_u8, uint16_t: NPS_COLUMN_u16, \
	uint32_t: NPS_COLUMN_u32, uint64_t: NPS_COLUMN_u64, int64_t: NPS_COLUMN_i64)
#define NPS_CSV_ANY_NUMBER(cell) _Generic((cell), uint8_t: NPS_COLUMN_u8, uint16_t: NPS_COLUMN_u16, \
	uint32_t: NPS_COLUMN_u32, uint64_t: NPS_COLUMN_u64, int64_t: NPS_COLUMN_i64, double: NPS_COLUMN_f64)
#define NPS_CSV_THOUSANDTHS(cell) _Generic((cell), uint64_t: NPS_COLUMN_u64, int64_t: NPS_COLUMN_i64)
#define NPS_CSV_32_BITS(cell) _Generic((cell), uint32_t: NPS_COLUMN_u32)
#define NPS_CSV_64_BITS(cell) _Generic((cell), uint64_t: NPS_COLUMN_u64)
#define NPS_CSV_STRING(cell) _Generic((cell), const char *: NPS_COLUMN_u64) /* as wide as a pointer */
/* clang-format on */

#define NPS_CSV_KIND_NUMBER(cell) NPS_CSV_INTEGER(cell)
#define NPS_CSV_KIND_NUMBER_NOT_0(cell) NPS_CSV_INTEGER(cell)
#define NPS_CSV_KIND_NUMBER_OR_BLANK(cell) NPS_CSV_INTEGER(cell)
#define NPS_CSV_KIND_ID(cell) NPS_CSV_32_BITS(cell)
#define NPS_CSV_KIND_PID(cell) NPS_CSV_64_BITS(cell)
#define NPS_CSV_KIND_TID(cell) NPS_CSV_64_BITS(cell)
#define NPS_CSV_KIND_HEX(cell) NPS_CSV_INTEGER(cell)
#define NPS_CSV_KIND_TEXT(cell) NPS_CSV_32_BITS(cell)
#define NPS_CSV_KIND_TEXT_OR_BLANK(cell) NPS_CSV_32_BITS(cell)
#define NPS_CSV_KIND_TEXT_OF_ROW(cell) NPS_CSV_32_BITS(cell)
#define NPS_CSV_KIND_SHAPES(cell) NPS_CSV_32_BITS(cell)
#define NPS_CSV_KIND_WORD(cell) NPS_CSV_STRING(cell)
#define NPS_CSV_KIND_DEVICE(cell) NPS_CSV_32_BITS(cell)
#define NPS_CSV_KIND_NPU(cell) NPS_CSV_32_BITS(cell)
#define NPS_CSV_KIND_TIME(cell) NPS_CSV_THOUSANDTHS(cell)
#define NPS_CSV_KIND_TIME_NOT_0(cell) NPS_CSV_64_BITS(cell)
#define NPS_CSV_KIND_TIME_OR_BLANK(cell) NPS_CSV_THOUSANDTHS(cell)
#define NPS_CSV_KIND_MILLI(cell) NPS_CSV_THOUSANDTHS(cell)
#define NPS_CSV_KIND_SHORT(cell) NPS_CSV_THOUSANDTHS(cell)
#define NPS_CSV_KIND_SHORT_OR_BLANK(cell) NPS_CSV_THOUSANDTHS(cell)
#define NPS_CSV_KIND_SPAN(cell) NPS_CSV_THOUSANDTHS(cell)
#define NPS_CSV_KIND_SPAN_OR_BLANK(cell) NPS_CSV_THOUSANDTHS(cell)
#define NPS_CSV_KIND_FIXED(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_COUNT(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_DECIMAL(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_DECIMAL_INT_0(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_FINE(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_REPR(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_REPR_INT_0(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_REPR_OR_BLANK(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_SUM_OF_ROW(cell) NPS_CSV_ANY_NUMBER(cell)
#define NPS_CSV_KIND_SUM_INT_0_OF_ROW(cell) NPS_CSV_ANY_NUMBER(cell)

/* Of these, only the types are of use; nothing is read. (Analysers report what is at address 0.) */
#define NPS_CSV_ANY(type) ((type *)sizeof(type))

/*
 * A column of the model's TABLE (the type's name) in FORMAT, without NPS_CSV_. More members of struct
 * nps_csv_column may follow: .when = NPS_CSV_B, .source = 1.
 */
#define NPS_CSV_COL(name, form, of, column, ...)                                                             \
	{                                                                                                    \
		.title = (name), .format = NPS_CSV_##form,                                                   \
		.kind = NPS_CSV_KIND_##form(*NPS_CSV_ANY(struct nps_##of##_table)->column),                  \
		.offset = NPS_ORDINAL(of, column), ##__VA_ARGS__                                             \
	}

/* The same of MEMBER of a C type. */
#define NPS_CSV_FIELD(name, form, type, member, ...)                                                         \
	{                                                                                                    \
		.title = (name), .format = NPS_CSV_##form,                                                   \
		.kind = NPS_CSV_KIND_##form(NPS_CSV_ANY(type)->member), .offset = offsetof(type, member),    \
		##__VA_ARGS__                                                                                \
	}

/* The same TEXT in all rows. */
#define NPS_CSV_SAME(name, text, ...)                                                                        \
	{                                                                                                    \
		.title = (name), .format = NPS_CSV_LITERAL, .literal = (text), ##__VA_ARGS__                 \
	}

/* The column above has N/A in rows of VARIANT_. */
#define NPS_CSV_NA(variant_) NPS_CSV_SAME(NULL, "N/A", .variant = (variant_))

/* A cell that WRITE writes. */
#define NPS_CSV_BY(name, write, ...)                                                                         \
	{                                                                                                    \
		.title = (name), .format = NPS_CSV_PUT, .put = (write), ##__VA_ARGS__                        \
	}

/* The leading column, not in generation A: of a table with a column `device`; of one about the host. */
#define NPS_CSV_DEVICE_ID(of) NPS_CSV_COL("Device_id", DEVICE, of, device, .when = NPS_CSV_B)
#define NPS_CSV_HOST_ID NPS_CSV_SAME("Device_id", "host", .when = NPS_CSV_B)

#define NPS_CSV_COLUMNS(array)                                                                               \
	{                                                                                                    \
		(array), NPS_ARRAY_SIZE(array)                                                               \
	}
/* Of a table whose rows are those of FIELD of the model. */
#define NPS_CSV_OF(field, array) .columns = NPS_CSV_COLUMNS(array), .table = offsetof(struct nps_model, field)

#endif
