/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/csv_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXTS 4096 /* cells kept by text id; a job has a few thousand kernels and shapes */
#define KEPT (NPS_CSV_CELL - 8)

struct nps_csv_text {
	uint32_t key; /* text id and style */
	uint32_t len;
	char cell[KEPT]; /* with the comma */
};

struct nps_csv *nps_csv__new(const struct nps_export *ex, int dirfd, const struct nps_csv_file *file)
{
	struct nps_csv *csv = malloc(sizeof(*csv));

	if (!csv)
		return NULL;
	memset(csv, 0, offsetof(struct nps_csv, buf));
	csv->ex = ex;
	csv->model = ex->model;
	csv->file = *file;
	csv->dirfd = dirfd;
	csv->pace.model = ex->model;
	csv->texts = calloc(TEXTS, sizeof(*csv->texts));
	if (!csv->texts) {
		free(csv);
		return NULL;
	}
	for (size_t i = 0; i < TEXTS; i++)
		csv->texts[i].key = NPS_NONE;
	return csv;
}

/* SLICE -1: the name of a table that has one file. */
static void file_name(const struct nps_csv *csv, int64_t slice, char *name, size_t size)
{
	if (!csv->file.stamped)
		snprintf(name, size, "%s.csv", csv->file.stem);
	else if (slice < 0)
		snprintf(name, size, "%s_%s.csv", csv->file.stem, csv->ex->stamp);
	else
		snprintf(name, size, "%s_slice_%lld_%s.csv", csv->file.stem, (long long)slice,
			 csv->ex->stamp);
}

static void slice_finish(struct nps_csv *csv)
{
	int err;

	if (!csv->open)
		return;
	nps_writer__bytes(&csv->w, csv->buf, csv->len);
	csv->len = 0;
	csv->open = false;
	err = nps_writer__close(&csv->w);
	csv->err = csv->err ? csv->err : err;
}

static int slice_open(struct nps_csv *csv, int64_t slice)
{
	char name[128];
	int err;

	file_name(csv, slice, name, sizeof(name));
	err = nps_writer__open(&csv->w, csv->dirfd, name);
	if (err)
		return err;
	csv->open = true;
	nps_writer__lit(&csv->w, csv->file.header);
	if (csv->file.crlf)
		nps_writer__lit(&csv->w, "\r");
	nps_writer__lit(&csv->w, "\n");
	return 0;
}

/* The table turns out to have more than one slice. */
static int name_first_slice(struct nps_csv *csv)
{
	char from[128], to[128];

	file_name(csv, -1, from, sizeof(from));
	file_name(csv, 0, to, sizeof(to));
	return renameat(csv->dirfd, from, csv->dirfd, to) ? -errno : 0;
}

void nps_csv__begin(struct nps_csv *csv)
{
	if (csv->err) { /* the buffer is dropped when it is full */
		csv->rows = 0;
		return;
	}
	if (!csv->open) {
		csv->err = slice_open(csv, -1);
	} else if (csv->file.stamped) {
		slice_finish(csv);
		if (!csv->err && !csv->slice)
			csv->err = name_first_slice(csv);
		if (!csv->err)
			csv->err = slice_open(csv, ++csv->slice);
	}
	csv->rows = 0;
}

/* The comma before the next cell stays, because the end of a row replaces it. */
void nps_csv__flush(struct nps_csv *csv)
{
	if (!csv->len)
		return;
	if (csv->open)
		nps_writer__bytes(&csv->w, csv->buf, csv->len - 1);
	csv->buf[0] = csv->buf[csv->len - 1];
	csv->len = 1;
}

int nps_csv__close(struct nps_csv *csv)
{
	int err;

	if (!csv)
		return -ENOMEM;
	slice_finish(csv);
	err = csv->err;
	free(csv->texts);
	free(csv);
	return err;
}

/* Appends TEXT with quotes doubled. */
static void escaped(struct nps_csv *csv, const char *text, bool lines)
{
	for (; *text; text++) {
		char *at = nps_csv__room(csv, 2), c = *text;

		if ((unsigned char)c < 0x20 && !(lines && (c == '\r' || c == '\n')))
			c = ' ';
		if (c == '"')
			*at++ = c;
		*at++ = c;
		csv->len = at - csv->buf;
	}
}

static void one_char(struct nps_csv *csv, char c)
{
	*nps_csv__room(csv, 1) = c;
	csv->len++;
}

static void any_text(struct nps_csv *csv, const char *text, bool own_quotes)
{
	bool quote = own_quotes || strpbrk(text, ",\"");

	if (quote)
		one_char(csv, '"');
	if (own_quotes)
		escaped(csv, "\"", false);
	escaped(csv, text, false);
	if (own_quotes)
		escaped(csv, "\"", false);
	if (quote)
		one_char(csv, '"');
	one_char(csv, ',');
}

void nps_csv__text_cell(struct nps_csv *csv, uint32_t text, enum nps_csv_style style)
{
	uint32_t key = text << 1 | style;
	struct nps_csv_text *kept = &csv->texts[key * 2654435761U >> 20];
	char *at = nps_csv__room(csv, 3 * NPS_CSV_CELL); /* so that no flush is needed within a cached cell */
	size_t before = csv->len;
	const char *bytes;

	if (text == NPS_NONE) {
		csv->len += nps_put_text(at, "N/A,", 4);
		return;
	}
	if (kept->key == key) {
		memcpy(at, kept->cell, KEPT);
		csv->len += kept->len;
		return;
	}
	bytes = nps_model__text(csv->model, text);
	any_text(csv, bytes, style == NPS_CSV_QUOTED && *bytes != '"' && text != csv->model->na);
	if (strlen(bytes) >= KEPT || csv->len - before > KEPT)
		return;
	kept->key = key;
	kept->len = csv->len - before;
	memcpy(kept->cell, at, kept->len);
}

void nps_csv__open_quotes(struct nps_csv *csv)
{
	one_char(csv, '"');
}

void nps_csv__part(struct nps_csv *csv, const char *text)
{
	escaped(csv, text, true);
}

void nps_csv__close_quotes(struct nps_csv *csv)
{
	one_char(csv, '"');
	one_char(csv, ',');
}
