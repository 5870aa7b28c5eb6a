/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/csv_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONGEST_ROW (1UL << 20)

static int buffer_put(struct nps_csv_reader *r, size_t *len, char byte)
{
	char *more;

	if (*len == r->room) {
		more = realloc(r->row, r->room ? 2 * r->room : 4096);
		if (!more)
			return -ENOMEM;
		r->row = more;
		r->room = r->room ? 2 * r->room : 4096;
	}
	r->row[(*len)++] = byte;
	return 0;
}

/*
 * Reads a row as its cells, each ended by a NUL, into r->row; *CELLS: how many. 1, 0 at the end of the
 * file, or negative errno. *WHOLE: false if it was too long, and what is in r->row is not all.
 */
static int read_cells(struct nps_csv_reader *r, size_t *cells, bool *whole)
{
	bool quoted = false, first = true;
	size_t len = 0;
	int c, err = 0;

	*cells = 0;
	*whole = true;
	while (!err && (c = getc_unlocked(r->file)) != EOF) {
		if (quoted && c == '"') {
			int next = getc_unlocked(r->file);

			if (next != '"') {
				ungetc(next, r->file);
				quoted = false;
				continue;
			}
		} else if (!quoted && c == '"' && first) {
			quoted = true;
			first = false;
			continue;
		} else if (!quoted && (c == ',' || c == '\n')) {
			err = *whole ? buffer_put(r, &len, 0) : 0;
			++*cells;
			first = true;
			if (c == '\n')
				return err ? err : 1;
			continue;
		} else if (!quoted && c == '\r') {
			continue;
		}
		first = false;
		if (!c || len >= LONGEST_ROW)
			*whole = false;
		else
			err = buffer_put(r, &len, (char)c);
	}
	if (err || ferror(r->file))
		return err ? err : -EIO;
	if (!len && !*cells)
		return 0;
	*whole &= !quoted;
	++*cells;
	err = buffer_put(r, &len, 0);
	return err ? err : 1;
}

static size_t row_split(char *row, size_t cells, char **at)
{
	for (size_t i = 0; i < cells && i < NPS_CSV_CELLS; i++) {
		at[i] = row;
		row += strlen(row) + 1;
	}
	return cells;
}

int nps_csv_reader__open(struct nps_csv_reader *r, int fd)
{
	size_t cells;
	bool whole;
	int err;

	*r = (struct nps_csv_reader){ .file = fdopen(fd, "r") };
	if (!r->file) {
		err = -errno;
		close(fd);
		return err;
	}
	err = read_cells(r, &cells, &whole);
	if (err > 0 && (!whole || cells > NPS_CSV_CELLS))
		err = -EILSEQ;
	if (err <= 0) {
		nps_csv_reader__close(r);
		return err ? err : -EILSEQ;
	}
	r->header = r->row;
	r->row = NULL;
	r->room = 0;
	r->ntitles = row_split(r->header, cells, r->titles);
	if (!strncmp(r->titles[0], "\xef\xbb\xbf", 3))
		r->titles[0] += 3;
	return 0;
}

void nps_csv_reader__close(struct nps_csv_reader *r)
{
	if (r->file)
		fclose(r->file);
	free(r->row);
	free(r->header);
	*r = (struct nps_csv_reader){ 0 };
}

int nps_csv_reader__next(struct nps_csv_reader *r)
{
	for (;;) {
		size_t cells;
		bool whole;
		int found = read_cells(r, &cells, &whole);

		if (found <= 0)
			return found;
		if (!whole || cells > r->ntitles) {
			r->damaged++;
			continue;
		}
		/* Rows may end before the last column, as those of kernels without counters do. */
		r->n = row_split(r->row, cells, r->cells);
		return 1;
	}
}

int nps_csv_reader__column(const struct nps_csv_reader *r, const char *title)
{
	for (size_t i = 0; i < r->ntitles; i++)
		if (!strcmp(r->titles[i], title))
			return (int)i;
	return -1;
}

const char *nps_csv_reader__cell(struct nps_csv_reader *r, int column)
{
	char *cell, *end;

	if (column < 0 || (size_t)column >= r->n)
		return "";
	cell = r->cells[column];
	cell += strspn(cell, " \t");
	for (end = cell + strlen(cell); end > cell && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	*end = 0;
	return cell;
}
