/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/util.h"
#include "show.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define WIDEST 64 /* characters of a text's column */
#define CELL 512 /* bytes of a cell */
#define COLUMNS 24

/* At most WIDEST characters of TEXT; the end of a longer one is kept, as it identifies the text. */
static void text_cell(const char *text, char out[CELL])
{
	size_t len = strlen(text), n = 0, at = 0, chars = 0, skip_from = 0, skip_to = 0;

	for (size_t i = 0; i < len; i++)
		chars += (text[i] & 0xc0) != 0x80;
	if (chars > WIDEST) {
		size_t seen = 0, left = WIDEST / 3;

		for (size_t i = 0; i < len; i++) {
			if ((text[i] & 0xc0) == 0x80)
				continue;
			if (seen == left)
				skip_from = i;
			if (seen == chars - (WIDEST - left - 2))
				skip_to = i;
			seen++;
		}
	}
	while (at < len && n + 8 < CELL) {
		size_t skip = nps_control(text + at);

		if (skip_to && at == skip_from) {
			out[n++] = '.';
			out[n++] = '.';
			at = skip_to;
			continue;
		}
		out[n++] = skip ? '?' : text[at];
		at += skip ? skip : 1;
	}
	out[n] = 0;
}

static const cJSON *member(const cJSON *row, const char *path)
{
	while (row && *path) {
		size_t len = strcspn(path, ".");
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)len, path);
		row = cJSON_GetObjectItemCaseSensitive(row, key);
		path += len + (path[len] == '.');
	}
	return row;
}

/* The number of an item, which may be written as digits. */
static double number(const cJSON *item)
{
	double value;

	if (cJSON_IsNumber(item))
		return cJSON_GetNumberValue(item);
	if (cJSON_IsRaw(item) && item->valuestring && sscanf(item->valuestring, "%lf", &value) == 1)
		return value;
	return (double)NAN;
}

static void cell(const cJSON *row, const struct nps_show_column *column, double start_us, char out[CELL])
{
	const cJSON *item = member(row, column->path);
	double value = number(item);

	out[0] = 0;
	if (cJSON_IsBool(item))
		snprintf(out, CELL, "%s", cJSON_IsTrue(item) ? "yes" : "no");
	else if (column->kind == NPS_SHOW_TEXT && cJSON_IsString(item))
		text_cell(item->valuestring, out);
	else if (!isfinite(value))
		return;
	else if (column->kind == NPS_SHOW_SHARE)
		snprintf(out, CELL, "%.1f%%", 100 * value);
	else if (column->kind == NPS_SHOW_WHEN)
		snprintf(out, CELL, "%+.3f", (value - start_us) / 1e3);
	else if (column->kind == NPS_SHOW_COUNT || column->kind == NPS_SHOW_TEXT)
		snprintf(out, CELL, "%.0f", value);
	else
		snprintf(out, CELL, column->kind == NPS_SHOW_US ? "%.3f" : "%.2f", value);
}

static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void pad(FILE *out, int n)
{
	while (n-- > 0)
		putc(' ', out);
}

static void put_cell(FILE *out, const char *text, int width, bool left, bool last)
{
	if (!left)
		pad(out, width - width_of(text));
	fputs(text, out);
	if (left && !last)
		pad(out, width - width_of(text));
	fputs(last ? "\n" : "  ", out);
}

void nps_show__table(FILE *out, const char *title, const cJSON *rows, const struct nps_show_column *columns,
		     size_t ncolumns, size_t top, double start_us)
{
	int widths[COLUMNS] = { 0 };
	size_t n = 0, all = cJSON_GetArraySize(rows), last = 0;
	const cJSON *row;
	char text[CELL];

	if (!all || ncolumns > COLUMNS)
		return;
	cJSON_ArrayForEach(row, rows)
	{
		if (n++ == top)
			break;
		for (size_t i = 0; i < ncolumns; i++) {
			cell(row, &columns[i], start_us, text);
			widths[i] = NPS_MAX(widths[i], width_of(text));
		}
	}
	for (size_t i = 0; i < ncolumns; i++) {
		if (!widths[i])
			continue;
		widths[i] = NPS_MAX(widths[i], width_of(columns[i].title));
		last = i;
	}
	fprintf(out, "\n%s\n", title);
	for (size_t i = 0; i < ncolumns; i++)
		if (widths[i])
			put_cell(out, columns[i].title, widths[i], columns[i].kind == NPS_SHOW_TEXT,
				 i == last);
	for (size_t i = 0; i < ncolumns; i++) {
		for (int k = 0; k < widths[i]; k++)
			putc('-', out);
		if (widths[i])
			fputs(i == last ? "\n" : "  ", out);
	}
	n = 0;
	cJSON_ArrayForEach(row, rows)
	{
		if (n++ == top)
			break;
		for (size_t i = 0; i < ncolumns; i++) {
			if (!widths[i])
				continue;
			cell(row, &columns[i], start_us, text);
			put_cell(out, text, widths[i], columns[i].kind == NPS_SHOW_TEXT, i == last);
		}
	}
	if (all > top)
		fprintf(out, "... and %zu more\n", all - top);
}
