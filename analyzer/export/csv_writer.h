/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writer of one CSV table. The file is made with the first row, so that a table without rows leaves none; in
 * msprof's layout it has a stamp in its name and is cut into slices. Rows are appended cell by cell:
 * nps_csv__row(), cells, nps_csv__end(). The first error sticks and is returned by nps_csv__close().
 */
#ifndef NPS_CSV_WRITER_H
#define NPS_CSV_WRITER_H

#include "base/csv_number.h"
#include "base/json_writer.h"
#include "export/export.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define NPS_CSV_SLICE 1000000 /* rows of a file of msprof's layout */
#define NPS_CSV_CELL 128 /* bytes that a cached text or a number takes at most, with its comma */

struct nps_csv_file {
	const char *stem; /* op_summary */
	const char *header;
	bool stamped; /* msprof's names and slices */
	bool crlf;
};

struct nps_csv {
	const struct nps_export *ex;
	const struct nps_model *model;
	struct nps_csv_file file;
	int dirfd, err;
	bool open;
	uint32_t slice;
	uint64_t rows; /* of this file */
	struct nps_pace pace;
	struct nps_writer w;
	struct nps_csv_text *texts; /* cells by text id, as they are written */
	size_t len; /* bytes in buf; the last one is the comma after a cell */
	char buf[32 << 10];
};

/* Begins FILE; its texts stay valid. On the heap, because it is large. NULL: no memory. */
struct nps_csv *nps_csv__new(const struct nps_export *ex, int dirfd, const struct nps_csv_file *file);

/* Finishes the file and frees CSV (NULL is -ENOMEM). 0 or the first error. */
int nps_csv__close(struct nps_csv *csv);

void nps_csv__begin(struct nps_csv *csv); /* the file, before a row */
void nps_csv__flush(struct nps_csv *csv);

/* The file of a table without rows, if what it holds was requested of the capture (NPS_REQUESTED_*). */
static inline void nps_csv__without_rows(struct nps_csv *csv, unsigned int requested)
{
	if (csv->model->requested & requested)
		nps_csv__begin(csv);
}

static inline void nps_csv__row(struct nps_csv *csv)
{
	if (!csv->open || csv->rows == NPS_CSV_SLICE)
		nps_csv__begin(csv);
	csv->rows++;
	nps_pace__step(&csv->pace);
}

/* Room for SIZE bytes, far below the buffer's. */
static inline char *nps_csv__room(struct nps_csv *csv, size_t size)
{
	if (csv->len + size > sizeof(csv->buf))
		nps_csv__flush(csv);
	return csv->buf + csv->len;
}

static inline void nps_csv__end(struct nps_csv *csv)
{
	char *at = nps_csv__room(csv, 2);

	if (csv->file.crlf) {
		at[-1] = '\r';
		at[0] = '\n';
		csv->len++;
	} else {
		at[-1] = '\n';
	}
}

/* Ends a cell of LEN bytes that was written at AT. */
static inline void nps_csv__cell(struct nps_csv *csv, char *at, size_t len)
{
	at[len] = ',';
	csv->len += len + 1;
}

/* A short constant that needs no quotes. */
static inline void nps_csv__lit(struct nps_csv *csv, const char *text)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);

	nps_csv__cell(csv, at, nps_put_text(at, text, strlen(text)));
}

static inline void nps_csv__empty(struct nps_csv *csv)
{
	nps_csv__cell(csv, nps_csv__room(csv, 1), 0);
}

static inline void nps_csv__u64(struct nps_csv *csv, uint64_t value)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);

	nps_csv__cell(csv, at, nps_put_u64(at, value));
}

/* NPS_NULL is an empty cell. */
static inline void nps_csv__i64(struct nps_csv *csv, int64_t value)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);

	nps_csv__cell(csv, at, value == NPS_NULL ? 0 : nps_put_i64(at, value));
}

/* NPU:0 */
static inline void nps_csv__npu(struct nps_csv *csv, uint32_t device)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);
	size_t len = nps_put_text(at, "NPU:", 4);

	nps_csv__cell(csv, at, len + nps_put_u64(at + len, device));
}

/* A time as microseconds; the TAB keeps spreadsheets from rounding it. */
static inline void nps_csv__time(struct nps_csv *csv, uint64_t ns)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);
	size_t len = nps_put_milli(at, ns);

	at[len] = '\t';
	nps_csv__cell(csv, at, len + 1);
}

/* Thousandths with three decimals. */
static inline void nps_csv__milli(struct nps_csv *csv, uint64_t value)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);

	nps_csv__cell(csv, at, nps_put_milli(at, value));
}

/* Thousandths without trailing zeros. */
static inline void nps_csv__short(struct nps_csv *csv, uint64_t value)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);

	nps_csv__cell(csv, at, nps_put_milli_short(at, value));
}

/* A duration or the like of a table of CANN's: generation A shortens what B writes with three decimals. */
static inline void nps_csv__span(struct nps_csv *csv, uint64_t thousandths)
{
	if (csv->ex->generation == NPS_GENERATION_A)
		nps_csv__short(csv, thousandths);
	else
		nps_csv__milli(csv, thousandths);
}

/* A float of Python's; N/A for NaN. */
static inline void nps_csv__repr(struct nps_csv *csv, double value)
{
	char *at = nps_csv__room(csv, NPS_CSV_CELL);

	if (isnan(value))
		nps_csv__lit(csv, "N/A");
	else
		nps_csv__cell(csv, at, nps_put_repr(at, value));
}

#define NPS_KB 1024.0
#define NPS_MB 1048576.0

enum nps_csv_style {
	NPS_CSV_PLAIN, /* control characters become spaces */
	NPS_CSV_QUOTED /* in quotes that belong to the text, as shapes have them */
};

/* A text of the model, N/A for NPS_NONE. */
void nps_csv__text_cell(struct nps_csv *csv, uint32_t text, enum nps_csv_style style);

static inline void nps_csv__text(struct nps_csv *csv, uint32_t text)
{
	nps_csv__text_cell(csv, text, NPS_CSV_PLAIN);
}

/*
 * A cell of many pieces: between these two, pieces are appended with nps_csv__part(), which keeps line ends.
 * Such a cell is always quoted.
 */
void nps_csv__open_quotes(struct nps_csv *csv);
void nps_csv__part(struct nps_csv *csv, const char *text);
void nps_csv__close_quotes(struct nps_csv *csv);

#endif
