/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of the document on a terminal. */
#include "findings/table.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define WIDEST 64 /* characters of a text's column */
#define CELL 512 /* bytes of a cell */

/* At most WIDEST characters of TEXT; a longer one keeps its end, which differs from text to text. */
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
static double item_number(const cJSON *item)
{
	double value;

	if (cJSON_IsNumber(item))
		return cJSON_GetNumberValue(item);
	if (cJSON_IsRaw(item) && item->valuestring && sscanf(item->valuestring, "%lf", &value) == 1)
		return value;
	return (double)NAN;
}

static bool is_text(const struct nps_find_column *column)
{
	return column->unit <= NPS_FIND_HEX;
}

static void number_cell(double value, enum nps_find_unit unit, double start_us, char out[CELL])
{
	if (unit == NPS_FIND_SHARE)
		snprintf(out, CELL, "%.1f%%", 100 * value);
	else if (unit == NPS_FIND_TIME)
		snprintf(out, CELL, "%+.3f", (value - start_us) / 1e3);
	else if (unit == NPS_FIND_NUMBER)
		snprintf(out, CELL, "%.2f", value);
	else
		snprintf(out, CELL, "%.*f", unit <= NPS_FIND_COUNT ? 0 : 3, value);
}

static void column_cell(const cJSON *row, const struct nps_find_column *column, double start_us,
			char out[CELL])
{
	const cJSON *item = member(row, column->key);
	double value = item_number(item);

	out[0] = 0;
	if (cJSON_IsBool(item))
		snprintf(out, CELL, "%s", cJSON_IsTrue(item) ? "yes" : "no");
	else if (is_text(column) && cJSON_IsString(item))
		text_cell(item->valuestring, out);
	else if (isfinite(value))
		number_cell(value, column->unit, start_us, out);
}

static int text_width(const char *text)
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

static void table_put_cell(FILE *out, const char *text, int width, bool left, bool last)
{
	if (!left)
		pad(out, width - text_width(text));
	fputs(text, out);
	if (left && !last)
		pad(out, width - text_width(text));
	fputs(last ? "\n" : "  ", out);
}

/* A table that is being printed. */
struct printed {
	const struct nps_find_column *columns[NPS_FIND_COLUMNS]; /* in their order */
	int widths[NPS_FIND_COLUMNS]; /* 0: it is left out */
	size_t n, last;
};

static void printed_choose(struct printed *p, const struct nps_find_table *table)
{
	size_t at = 0;

	for (size_t i = 0; i < table->len; i++) {
		const struct nps_find_column *c = &table->columns[i];

		p->n += c->title != NULL;
		if (c->title && c->print)
			p->columns[c->print - 1] = c;
	}
	for (size_t i = 0; i < table->len; i++) {
		if (!table->columns[i].title || table->columns[i].print)
			continue;
		while (p->columns[at])
			at++;
		p->columns[at] = &table->columns[i];
	}
}

/* Writes a line of the title (ROW NULL) or of a row. */
static void printed_line(const struct printed *p, const struct nps_view *v, const cJSON *row)
{
	char text[CELL];

	for (size_t i = 0; i < p->n; i++) {
		const struct nps_find_column *c = p->columns[i];

		if (!p->widths[i])
			continue;
		if (row)
			column_cell(row, c, v->start_us, text);
		table_put_cell(v->out, row ? text : c->title, p->widths[i], is_text(c), i == p->last);
	}
}

/* Widths of the columns, by the first rows. */
static void printed_measure(struct printed *p, const struct nps_view *v, const cJSON *rows)
{
	const cJSON *row = rows ? rows->child : NULL;
	char text[CELL];

	for (size_t n = 0; row && n < v->top; row = row->next, n++)
		for (size_t i = 0; i < p->n; i++) {
			column_cell(row, p->columns[i], v->start_us, text);
			p->widths[i] = NPS_MAX(p->widths[i], text_width(text));
		}
	for (size_t i = 0; i < p->n; i++) {
		if (!p->widths[i])
			continue;
		p->widths[i] = NPS_MAX(p->widths[i], text_width(p->columns[i]->title));
		p->last = i;
	}
}

void nps_view__table(const struct nps_view *v, const struct nps_find_table *table)
{
	const cJSON *rows = nps_view__at(v, table->path), *row;
	size_t n = 0, all = cJSON_GetArraySize(rows);
	struct printed p = { 0 };

	if (!all)
		return;
	printed_choose(&p, table);
	printed_measure(&p, v, rows);
	fprintf(v->out, "\n%s\n", table->title);
	printed_line(&p, v, NULL);
	for (size_t i = 0; i < p.n; i++) {
		for (int k = 0; k < p.widths[i]; k++)
			putc('-', v->out);
		if (p.widths[i])
			fputs(i == p.last ? "\n" : "  ", v->out);
	}
	for (row = rows->child; row && n < v->top; row = row->next, n++)
		printed_line(&p, v, row);
	if (all > v->top)
		fprintf(v->out, "... and %zu more\n", all - v->top);
}

void nps_view__counts(const struct nps_view *v, const struct nps_find_table *table, const cJSON *object)
{
	struct printed p = { 0 };

	printed_choose(&p, table);
	for (size_t i = 0; i < p.n; i++) {
		double value = nps_view__number(object, p.columns[i]->key);

		if (value > 0)
			fprintf(v->out, "%-36s %12.0f\n", p.columns[i]->title, value);
	}
}

const cJSON *nps_view__at(const struct nps_view *v, const char *path)
{
	return member(v->document, path);
}

double nps_view__number(const cJSON *object, const char *key)
{
	double value = item_number(cJSON_GetObjectItemCaseSensitive(object, key));

	return isnan(value) ? 0 : value;
}

const char *nps_view__text(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

	return text ? text : "";
}

void nps_view__unmeasured(const struct nps_view *v, const struct nps_find_table *table, const char *count,
			  const char *what)
{
	const cJSON *item = nps_view__at(v, count);
	double n = item_number(item);

	if (n > 0)
		fprintf(v->out, "%s%.0f %s are in no total: their time on the device was not measured\n",
			cJSON_GetArraySize(nps_view__at(v, table->path)) ? "" : "\n", n, what);
}
