/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of the document as data. A column is one line: the member of the row's JSON object, its unit, the
 * title in the table that `show` prints (NULL: it is not printed) and its value, an expression of the row R
 * and of what all rows have in common, M:
 *
 *	#define API_COLUMNS(C)                                              \
 *		C("name", TEXT, "name", nps_model__text(m, r->key))         \
 *		C("total_us", NS, "total", r->total)
 *	NPS_FIND_TABLE(table, "apis.rows", "CANN calls, us", struct nps_model, struct nps_group, API_COLUMNS)
 *
 * Names with dots are of members of objects within: "slowest.start_us".
 */
#ifndef NPS_FIND_TABLE_H
#define NPS_FIND_TABLE_H

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cJSON;

/* NaN is null. */
enum nps_find_unit {
	NPS_FIND_TEXT, /* const char * */
	NPS_FIND_BOOL,
	NPS_FIND_HEX, /* 0x1f */
	NPS_FIND_COUNT, /* an integer */
	NPS_FIND_NS, /* ns; as us with at most three decimals */
	NPS_FIND_US, /* the same of us, a double */
	NPS_FIND_EXACT_US, /* the same with all digits */
	NPS_FIND_NUMBER, /* with at most three decimals */
	NPS_FIND_SHARE, /* a fraction, printed as percent */
	NPS_FIND_TIME /* ns; as us with all digits, printed as ms since the start of the capture */
};

struct nps_find_column {
	const char *key;
	enum nps_find_unit unit;
	const char *title;
	bool optional; /* there is no such member if it is NaN, NULL, or NPS_FIND_NEVER */
	uint8_t print; /* position among the printed columns, from 1; 0: the next that is free */
};

union nps_find_cell {
	const char *text;
	uint64_t integer;
	double number;
};

struct nps_find_table {
	const char *path; /* of the array of its rows in the document; NULL: there are single rows */
	const char *title; /* NULL: it is not printed */
	const struct nps_find_column *columns;
	size_t len;
	/* Fills a cell for each column. */
	void (*fill)(const void *common, const void *row, union nps_find_cell *cell);
};

#define NPS_FIND_NEVER UINT64_MAX /* a TIME that is not known */
#define NPS_FIND_COLUMNS 96 /* of a table, at most */

#define NPS_FIND_FILL_TEXT(value) text = (value)
#define NPS_FIND_FILL_BOOL(value) integer = (value)
#define NPS_FIND_FILL_HEX(value) integer = (value)
#define NPS_FIND_FILL_COUNT(value) number = (double)(value)
#define NPS_FIND_FILL_NS(value) number = (value) / 1e3
#define NPS_FIND_FILL_US(value) number = (value)
#define NPS_FIND_FILL_EXACT_US(value) number = (value)
#define NPS_FIND_FILL_NUMBER(value) number = (value)
#define NPS_FIND_FILL_SHARE(value) number = (value)
#define NPS_FIND_FILL_TIME(value) integer = (value)

#define NPS_FIND_CELL(key_, unit_, title_, value_, ...) (cell++)->NPS_FIND_FILL_##unit_(value_);
#define NPS_FIND_COLUMN(key_, unit_, title_, value_, ...)                                                    \
	{ .key = (key_), .unit = NPS_FIND_##unit_, .title = (title_), ##__VA_ARGS__ },

#define NPS_FIND_TABLE(name, path_, title_, common_type, row_type, COLUMNS)                                  \
	static void name##_fill(const void *common, const void *row, union nps_find_cell *cell)              \
	{                                                                                                    \
		const common_type *m __attribute__((unused)) = common;                                       \
		const row_type *r __attribute__((unused)) = row;                                             \
                                                                                                             \
		COLUMNS(NPS_FIND_CELL)                                                                       \
	}                                                                                                    \
	static const struct nps_find_column name##_columns[] = { COLUMNS(NPS_FIND_COLUMN) };                 \
	_Static_assert(NPS_ARRAY_SIZE(name##_columns) <= NPS_FIND_COLUMNS, "too many columns");              \
	static const struct nps_find_table name = { (path_), (title_), name##_columns,                       \
						    NPS_ARRAY_SIZE(name##_columns), name##_fill };

/* Adds the columns of ROW to OBJECT. */
void nps_find__members(struct cJSON *object, const struct nps_find_table *table, const void *common,
		       const void *row);

/* An object of them alone, which the caller frees. NULL: no memory. */
struct cJSON *nps_find__object(const struct nps_find_table *table, const void *common, const void *row);

/* Makes the array of TABLE in DOCUMENT, of N rows that lie SIZE bytes apart. Returns it; NULL: no memory. */
struct cJSON *nps_find__rows(struct cJSON *document, const struct nps_find_table *table, const void *common,
			     const void *rows, size_t n, size_t size);

/* --- the document on a terminal ------------------------------------------------------------------------ */

struct nps_view {
	FILE *out;
	const struct cJSON *document;
	size_t top; /* rows of a table, at most */
	double start_us; /* of the capture */
};

/* What is at PATH in the document. NULL: there is nothing. */
const struct cJSON *nps_view__at(const struct nps_view *view, const char *path);

/* Member KEY of OBJECT, which may be written as digits; 0 if it is none. */
double nps_view__number(const struct cJSON *object, const char *key);

/* A string member, "" if it is none. */
const char *nps_view__text(const struct cJSON *object, const char *key);

/*
 * Prints the first rows of TABLE, unless there are none. Columns are as wide as their cells; those that have
 * none are left out. Texts have their control characters replaced.
 */
void nps_view__table(const struct nps_view *view, const struct nps_find_table *table);

/* Prints the counts of OBJECT that are above 0, a line each. */
void nps_view__counts(const struct nps_view *view, const struct nps_find_table *table,
		      const struct cJSON *object);

/* How many are in no total of TABLE, because nobody measured them: the number at COUNT in the document. */
void nps_view__unmeasured(const struct nps_view *view, const struct nps_find_table *table, const char *count,
			  const char *what);

#endif
