/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of findings on a terminal. */
#ifndef NPS_SHOW_H
#define NPS_SHOW_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdio.h>

struct cJSON;

enum nps_show_kind {
	NPS_SHOW_TEXT,
	NPS_SHOW_COUNT,
	NPS_SHOW_US, /* a length, three decimals */
	NPS_SHOW_NUMBER,
	NPS_SHOW_SHARE, /* a fraction, as percent */
	NPS_SHOW_WHEN /* a time of the trace, as ms since the start of the capture */
};

struct nps_show_column {
	const char *title;
	const char *path; /* of the member of a row, parts separated by dots */
	enum nps_show_kind kind;
};

/*
 * TITLE and the first TOP of ROWS (an array; NULL: nothing is printed), columns as wide as their cells. Columns without any
 * cell are left out. Texts have their control characters replaced. START_US: of the capture.
 */
void nps_show__table(FILE *out, const char *title, const struct cJSON *rows,
		     const struct nps_show_column *columns, size_t ncolumns, size_t top, double start_us);

/* The sections of one result that ONLY names (a bit each, see nps_show__section()). */
void nps_show__result(FILE *out, const struct cJSON *document, unsigned int only, size_t top);

/* The comparison of ranks. */
void nps_show__ranks(FILE *out, const struct cJSON *document, size_t top);

/* The bit of the section NAME of length LEN, 0 if there is none. */
unsigned int nps_show__section(const char *name, size_t len);

/* Names of all sections, for messages. */
extern const char nps_show_sections[];

/* The bit of the comparison of ranks. */
#define NPS_SHOW_RANKS (1U << 31)

/* Appends trace files to INPUTS (struct nps_input): PATH itself, or those below it. 0, -ENOENT or another negative errno. */
int nps_show__find_traces(struct nps_vec *inputs, const char *path);

/* The subcommand. Exit status 0 done, 1 failed, 2 wrong usage, 3 done but something was lost. */
int nps_cmd_show(int argc, char **argv);

#endif
