/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of events, series and tracks of a row of samples, by the patterns of counter_tables.h. */
#include "schema/counters.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct name {
	const struct nps_counter_view *x;
	const struct nps_counter_table *table;
	size_t row;
	char *out;
	size_t len, size;
};

static void append(struct name *n, const char *text, size_t len)
{
	size_t fits = NPS_MIN(len, n->size - n->len);

	memcpy(n->out + n->len, text, fits);
	n->len += fits;
}

/* The cell of the column that is named at COLUMN, LEN bytes, as text in BUF or elsewhere; "": not known. */
static const char *cell_text(const struct name *n, const char *column, size_t len, int digits, char buf[24])
{
	const struct nps_table *rows = nps_counter_table__of(n->x->m, n->table);
	struct nps_counter_number number;
	size_t i = 0;

	while (i < n->table->len &&
	       (strncmp(n->table->counters[i].name, column, len) || n->table->counters[i].name[len]))
		i++;
	if (i == n->table->len)
		return "";
	if (!n->table->counters[i].value && rows->columns[i].kind == NPS_COLUMN_text)
		return nps_model__text(n->x->m, ((const uint32_t *)nps_table__cells(rows, i))[n->row]);
	number = nps_counter__number(n->x, n->table, i, n->row);
	if (number.kind == NPS_NUMBER_UNKNOWN)
		return "";
	if (number.kind == NPS_NUMBER_UNSIGNED)
		snprintf(buf, 24, "%0*" PRIu64, digits, number.u);
	else
		snprintf(buf, 24, "%0*" PRId64, digits,
			 number.kind == NPS_NUMBER_SIGNED ? number.i : (int64_t)number.real);
	return buf;
}

/* What stands between the braces FROM and TO. False: it is not known. */
static bool append_cell(struct name *n, const char *from, const char *to)
{
	size_t len = strcspn(from, ":%}");
	const char *text, *other;
	char buf[24];

	if (from == to) {
		append(n, n->table->name, strlen(n->table->name));
		return true;
	}
	text = cell_text(n, from, len, from[len] == '%' ? from[len + 2] - '0' : 0, buf);
	if (from[len] != ':') {
		append(n, text, strlen(text));
		return *text;
	}
	from += len + 1; /* a=text|other */
	other = memchr(from, '|', to - from);
	if (tolower((unsigned char)*text) == *from)
		append(n, from + 2, other - from - 2);
	else
		append(n, other + 1, to - other - 1);
	return true;
}

size_t nps_counter__name(const struct nps_counter_view *x, const struct nps_counter_table *table,
			 const char *pattern, size_t row, char *out, size_t size)
{
	struct name n = { x, table, row, out, 0, size - 1 };
	size_t optional = 0; /* where a part began that may be left out */
	bool known = true;

	while (*pattern) {
		size_t len = strcspn(pattern, "{[]");

		append(&n, pattern, len);
		pattern += len;
		if (*pattern == '{') {
			const char *end = strchr(pattern, '}');

			known &= append_cell(&n, pattern + 1, end);
			pattern = end;
		} else if (*pattern == '[') {
			optional = n.len;
			known = true;
		} else if (*pattern == ']' && !known) {
			n.len = optional;
		}
		pattern += *pattern != 0;
	}
	if (n.len == n.size)
		n.len = nps_utf8_fit(out, n.size);
	out[n.len] = 0;
	return n.len;
}
