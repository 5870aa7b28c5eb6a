/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of the model: columns side by side, all of one length. A small column is plain memory; a
 * large one is an unlinked temporary file that is mapped, so that a capture larger than
 * memory is page cache that the kernel can write back. A table is filled by appending and read in order.
 */
#ifndef NPS_TABLE_H
#define NPS_TABLE_H

#include "base/util.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a column holds; text is an id of the model's strings, time is Unix ns. */
enum nps_column_kind {
	NPS_COLUMN_u8,
	NPS_COLUMN_u16,
	NPS_COLUMN_u32,
	NPS_COLUMN_u64,
	NPS_COLUMN_i64,
	NPS_COLUMN_f64,
	NPS_COLUMN_text,
	NPS_COLUMN_time
};

typedef uint8_t nps_cell_u8;
typedef uint16_t nps_cell_u16;
typedef uint32_t nps_cell_u32;
typedef uint64_t nps_cell_u64;
typedef int64_t nps_cell_i64;
typedef double nps_cell_f64;
typedef uint32_t nps_cell_text;
typedef uint64_t nps_cell_time;

/* "Not there" of signed and floating cells; NPS_NONE is that of texts and row numbers. */
#define NPS_NULL INT64_MIN
#define NPS_NAN ((double)NAN)

struct nps_column {
	const char *name;
	uint8_t kind, size; /* enum nps_column_kind, bytes of a cell */
};

struct nps_table {
	size_t len; /* rows */
	size_t room; /* rows that fit without growing */
	const struct nps_column *columns;
	uint32_t ncolumns;
	int dirfd; /* directory of the temporary files; not owned */
	struct nps_table_mapping {
		size_t bytes;
		int fd; /* -1: plain memory */
	} * maps;
};

/* The number of COLUMN in a table of struct nps_TABLE_table. */
#define NPS_ORDINAL(table, column)                                                                           \
	((offsetof(struct nps_##table##_table, column) - sizeof(struct nps_table)) / sizeof(void *))

/* An empty table whose files, if it needs any, go to DIRFD. 0 or -ENOMEM. */
int nps_table__init(struct nps_table *table, const struct nps_column *columns, size_t ncolumns, int dirfd);
void nps_table__free(struct nps_table *table);

/* Room for LEN rows in all; pointers to cells move. 0, -ENOMEM, -ENOSPC or the file system's error. */
int nps_table__reserve(struct nps_table *table, size_t len);

/* Rows of which the latest stay resident while a table is being filled. */
#define NPS_TABLE_HOT (1U << 16)

/* Advises the kernel that the cells are not needed soon: they leave the resident set, not the page cache. */
void nps_table__cool(const struct nps_table *table);

/*
 * Appends a row of zeros and stores its number in *ROW; its cells are then set one by one.
 * 0 or negative errno.
 */
static inline int nps_table__add(struct nps_table *table, size_t *row)
{
	if (table->len == table->room) {
		int err = nps_table__reserve(table, table->len + 1);

		if (err)
			return err;
	}
	*row = table->len++;
	if (!(table->len & (NPS_TABLE_HOT - 1)))
		nps_table__cool(table);
	return 0;
}

/*
 * NPS_TABLE(task, NPS_TASK_COLUMNS) declares struct nps_task_table, whose first member is the
 * struct nps_table `t` and whose other members are pointers to the cells of the columns; struct
 * nps_task_row, a row of values; and nps_task_table__add(table, row), which appends one: 0 or negative errno.
 */
#define NPS_CELL_POINTER(kind, name, ...) nps_cell_##kind *name;
#define NPS_CELL_VALUE(kind, name, ...) nps_cell_##kind name;
#define NPS_CELL_STORE(kind, name, ...) table->name[at] = row->name;
#define NPS_TABLE(name_, COLUMNS)                                                                            \
	struct nps_##name_##_table {                                                                         \
		struct nps_table t;                                                                          \
		COLUMNS(NPS_CELL_POINTER)                                                                    \
	};                                                                                                   \
	struct nps_##name_##_row {                                                                           \
		COLUMNS(NPS_CELL_VALUE)                                                                      \
	};                                                                                                   \
	static inline int nps_##name_##_table__add(struct nps_##name_##_table *table,                        \
						   const struct nps_##name_##_row *row)                      \
	{                                                                                                    \
		size_t at;                                                                                   \
		int err = nps_table__add(&table->t, &at);                                                    \
                                                                                                             \
		if (err)                                                                                     \
			return err;                                                                          \
		COLUMNS(NPS_CELL_STORE)                                                                      \
		return 0;                                                                                    \
	}

/* Brings the rows into the order of column number TIME, which holds times. 0 or negative errno. */
int nps_table__order(struct nps_table *table, size_t time);

/* Leaves rows with times from FROM to TO in column number TIME, which are in order. 0 or negative errno. */
int nps_table__clip(struct nps_table *table, size_t time, uint64_t from, uint64_t to);

/* Makes the table LEN rows long; new rows are zeros. 0 or negative errno. */
int nps_table__resize(struct nps_table *table, size_t len);

/* Cells of column COLUMN: the pointers to them follow the table. */
static inline void *nps_table__cells(const struct nps_table *table, size_t column)
{
	return ((void *const *)(table + 1))[column];
}

#endif
