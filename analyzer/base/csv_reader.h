/* SPDX-License-Identifier: BSD-2-Clause */
/* Reader of CSV files as RFC 4180 has them, of any size: one row in memory. */
#ifndef NPS_CSV_READER_H
#define NPS_CSV_READER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NPS_CSV_CELLS 256

struct nps_csv_reader {
	FILE *file;
	char *row; /* cells, each ended by a NUL */
	size_t room;
	char *cells[NPS_CSV_CELLS];
	size_t n; /* cells of the row */
	char *header; /* the first row */
	char *titles[NPS_CSV_CELLS];
	size_t ntitles;
	uint64_t damaged; /* rows that were passed over: too long, or with another number of cells */
};

/*
 * Reads the header of FD, which is R's own from now on, also after an error. 0, -EILSEQ: it has none, or
 * negative errno.
 */
int nps_csv_reader__open(struct nps_csv_reader *r, int fd);
void nps_csv_reader__close(struct nps_csv_reader *r);

/* The next row: 1, 0 at the end, or negative errno. */
int nps_csv_reader__next(struct nps_csv_reader *r);

/* Number of the column TITLE, -1 if there is none. */
int nps_csv_reader__column(const struct nps_csv_reader *r, const char *title);

/* The cell of COLUMN without blanks around it, "" for column -1; valid until the next row. */
const char *nps_csv_reader__cell(struct nps_csv_reader *r, int column);

#endif
