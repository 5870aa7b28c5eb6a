/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of events, series and tracks of a row of samples, by the patterns of schema/counter_tables.h. */
#include "export/counters.h"

#include "base/csv_number.h"

#include <stdlib.h>
#include <string.h>

/* A part of a pattern. Texts are parts of the pattern. */
struct pattern_part {
	enum { LITERAL, CELL, CHOICE, TABLE, OPEN, CLOSE, DIES } kind;
	uint8_t column, digits; /* of CELL and CHOICE: ordinal; least digits */
	const char *text, *other; /* CELL: OTHER if it is not known; CHOICE: TEXT, or OTHER */
	uint16_t len, other_len;
	const char *firsts; /* CHOICE: the first letters for which TEXT stands */
};

struct nps_counter_name {
	size_t nparts;
	struct pattern_part parts[];
};

/* --- patterns ------------------------------------------------------------------------------------------ */

/* The ordinal of the column whose name is LEN bytes at NAME; NPS_NO_COLUMN: the pattern is wrong. */
static uint8_t pattern_column(const struct nps_counter_table *table, const char *name, size_t len)
{
	uint8_t i = 0;

	while (i < table->len &&
	       (strncmp(table->counters[i].name, name, len) || table->counters[i].name[len]))
		i++;
	return i < table->len ? i : NPS_NO_COLUMN;
}

/* What stands between the braces AT and END. */
static struct pattern_part pattern_parse_cell(const struct nps_counter_table *table, const char *at,
					      const char *end)
{
	size_t len = strcspn(at, ":%|}");
	struct pattern_part p = {
		.kind = CELL, .column = pattern_column(table, at, len), .digits = 1, .other = ""
	};
	const char *bar = memchr(at, '|', end - at);

	if (at == end) {
		p.kind = TABLE;
		return p;
	}
	if (at[len] == '%')
		p.digits = at[len + 1] - '0';
	if (at[len] == ':') {
		p.kind = CHOICE;
		p.firsts = at + len + 1;
		p.text = p.firsts + strcspn(p.firsts, "=") + 1;
		p.len = bar - p.text;
	}
	if (bar) {
		p.other = bar + 1;
		p.other_len = end - p.other;
	}
	return p;
}

struct nps_counter_name *nps_counter_name__new(const struct nps_counter_table *table, const char *pattern)
{
	/* Each part takes a character at least. */
	struct nps_counter_name *name =
		calloc(1, sizeof(*name) + strlen(pattern) * sizeof(struct pattern_part));
	struct pattern_part *p;

	for (p = name ? name->parts : NULL; p && *pattern; p++) {
		size_t len = strcspn(pattern, "{[]");

		if (len) {
			*p = (struct pattern_part){ .kind = LITERAL, .text = pattern, .len = len };
			pattern += len;
		} else if (*pattern == '{') {
			const char *end = strchr(pattern, '}');

			*p = pattern_parse_cell(table, pattern + 1, end);
			pattern = end + 1;
		} else if (*pattern == '[') {
			p->kind = pattern[1] == '!' ? DIES : OPEN;
			pattern += 1 + (p->kind == DIES);
		} else {
			p->kind = CLOSE;
			pattern++;
		}
	}
	if (name)
		name->nparts = p - name->parts;
	return name;
}

/* --- names --------------------------------------------------------------------------------------------- */

struct name_writer {
	char *out;
	size_t len, size;
};

static void name_append(struct name_writer *w, const char *text, size_t len)
{
	size_t fits = NPS_MIN(len, w->size - w->len);

	if (fits < len)
		fits = nps_utf8_fit(text, fits);
	memcpy(w->out + w->len, text, fits);
	w->len += fits;
}

/* Appends a text of the model, at most LONGEST bytes of it. */
static void name_append_text(struct name_writer *w, const char *text, size_t longest)
{
	size_t len = strnlen(text, longest + 1);

	name_append(w, text, len > longest ? nps_utf8_fit(text, longest) : len);
}

static void name_append_number(struct name_writer *w, uint64_t value, unsigned int digits)
{
	char text[24];
	size_t len = nps_put_u64(text, value);

	for (; digits > len; digits--)
		name_append(w, "0", 1);
	name_append(w, text, len);
}

/* The cell of a column: its text, or NULL and its NUMBER. */
static const char *pattern_cell(const struct nps_counter_view *x, const struct nps_counter_table *table,
				uint8_t column, size_t row, struct nps_counter_number *number)
{
	const struct nps_table *rows = nps_counter_table__of(x->m, table);

	if (column < rows->ncolumns && rows->columns[column].kind == NPS_COLUMN_text)
		return nps_model__text(x->m, ((const uint32_t *)nps_table__cells(rows, column))[row]);
	*number = nps_counter__number(x, table, column, row);
	return NULL;
}

/* False: the cell is not known. */
static bool name_append_cell(struct name_writer *w, const struct nps_counter_view *x,
			     const struct nps_counter_table *table, const struct pattern_part *p, size_t row,
			     size_t longest)
{
	struct nps_counter_number number = { .kind = NPS_NUMBER_UNKNOWN };
	const char *text = p->column == NPS_NO_COLUMN ? "" : pattern_cell(x, table, p->column, row, &number);

	if (text && *text) {
		name_append_text(w, text, longest);
		return true;
	}
	if (number.kind == NPS_NUMBER_SIGNED && number.i < 0) {
		name_append(w, "-", 1);
		name_append_number(w, -(uint64_t)number.i, p->digits);
		return false;
	}
	if (number.kind == NPS_NUMBER_SIGNED || number.kind == NPS_NUMBER_UNSIGNED) {
		name_append_number(w, number.u, p->digits);
		return number.kind == NPS_NUMBER_SIGNED || number.u; /* pids and the like begin with 1 */
	}
	name_append(w, p->other, p->other_len);
	return false;
}

static void name_append_choice(struct name_writer *w, const struct nps_counter_view *x,
			       const struct nps_counter_table *table, const struct pattern_part *p,
			       size_t row)
{
	struct nps_counter_number number = { .kind = NPS_NUMBER_UNKNOWN };
	const char *text = p->column == NPS_NO_COLUMN ? "" : pattern_cell(x, table, p->column, row, &number);
	char first = text ? *text : number.kind == NPS_NUMBER_UNKNOWN || number.u ? '1' : '0';

	if (first && memchr(p->firsts, first, p->text - 1 - p->firsts))
		name_append(w, p->text, p->len);
	else
		name_append(w, p->other, p->other_len);
}

size_t nps_counter_name__write(const struct nps_counter_name *name, const struct nps_counter_view *x,
			       const struct nps_counter_table *table, size_t row, size_t longest, char *out,
			       size_t size)
{
	struct name_writer w = { out, 0, size - 1 };
	size_t optional = 0; /* where a part began that may be left out */
	bool known = true;

	for (const struct pattern_part *p = name->parts; p < name->parts + name->nparts; p++) {
		switch (p->kind) {
		case LITERAL:
			name_append(&w, p->text, p->len);
			break;
		case TABLE:
			name_append(&w, table->name, strlen(table->name));
			break;
		case CELL:
			known &= name_append_cell(&w, x, table, p, row, longest);
			break;
		case CHOICE:
			name_append_choice(&w, x, table, p, row);
			break;
		case OPEN:
		case DIES:
			optional = w.len;
			known = p->kind == OPEN || x->dies;
			break;
		case CLOSE:
			w.len = known ? w.len : optional;
		}
	}
	out[w.len] = 0;
	return w.len;
}
