/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows in, derived rows out, as text: `test_derive_rows TABLE...` reads lines `TABLE<TAB>COLUMN=VALUE...`
 * from stdin into a model, derives, and prints the requested tables in the same form; an argument with a
 * slash is a directory for the communication files. Without arguments it tests itself. The scripts of
 * tests/conformance feed it with the vendor's results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "derive/derive.h"
#include "export/export.h"

#define NAMED(field, COLUMNS) { #field, offsetof(struct nps_model, field) },

static const struct {
	const char *name;
	size_t offset;
} tables[] = { NPS_OWN_TABLES(NAMED) };

static struct nps_table *table_of(struct nps_model *m, const char *name)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(tables); i++)
		if (!strcmp(tables[i].name, name))
			return (struct nps_table *)((char *)m + tables[i].offset);
	return NULL;
}

static int set_cell(struct nps_model *m, void *cells, uint8_t kind, size_t row, const char *value)
{
	switch (kind) {
	case NPS_COLUMN_u8:
		((uint8_t *)cells)[row] = strtoul(value, NULL, 0);
		return 0;
	case NPS_COLUMN_u16:
		((uint16_t *)cells)[row] = strtoul(value, NULL, 0);
		return 0;
	case NPS_COLUMN_u32:
		((uint32_t *)cells)[row] = strtoul(value, NULL, 0);
		return 0;
	case NPS_COLUMN_u64:
	case NPS_COLUMN_time:
		((uint64_t *)cells)[row] = strtoull(value, NULL, 0);
		return 0;
	case NPS_COLUMN_i64:
		((int64_t *)cells)[row] = *value ? strtoll(value, NULL, 0) : NPS_NULL;
		return 0;
	case NPS_COLUMN_f64:
		((double *)cells)[row] = strtod(value, NULL);
		return 0;
	case NPS_COLUMN_text:
		((uint32_t *)cells)[row] = nps_strings__addz(m->strings, value);
		return 0;
	}
	return -EINVAL;
}

static int read_row(struct nps_model *m, char *line)
{
	char *rest = NULL, *name = strtok_r(line, "\t\n", &rest), *field;
	struct nps_table *table = name ? table_of(m, name) : NULL;
	size_t row = 0;
	int err = table ? nps_table__add(table, &row) : -EINVAL;

	while (!err && (field = strtok_r(NULL, "\t\n", &rest))) {
		char *value = strchr(field, '=');
		uint32_t column = 0;

		if (!value)
			return -EINVAL;
		*value++ = '\0';
		while (column < table->ncolumns && strcmp(table->columns[column].name, field) != 0)
			column++;
		err = column == table->ncolumns ? -EINVAL
						: set_cell(m, nps_table__cells(table, column),
							   table->columns[column].kind, row, value);
	}
	return err;
}

static void print_cell(const struct nps_model *m, FILE *out, const void *cells, uint8_t kind, size_t row)
{
	switch (kind) {
	case NPS_COLUMN_u8:
		fprintf(out, "%u", ((const uint8_t *)cells)[row]);
		break;
	case NPS_COLUMN_u16:
		fprintf(out, "%u", ((const uint16_t *)cells)[row]);
		break;
	case NPS_COLUMN_u32:
		fprintf(out, "%u", ((const uint32_t *)cells)[row]);
		break;
	case NPS_COLUMN_u64:
	case NPS_COLUMN_time:
		fprintf(out, "%llu", (unsigned long long)((const uint64_t *)cells)[row]);
		break;
	case NPS_COLUMN_i64:
		if (((const int64_t *)cells)[row] != NPS_NULL)
			fprintf(out, "%lld", (long long)((const int64_t *)cells)[row]);
		break;
	case NPS_COLUMN_f64:
		fprintf(out, "%.17g", ((const double *)cells)[row]);
		break;
	case NPS_COLUMN_text:
		fputs(nps_model__text(m, ((const uint32_t *)cells)[row]), out);
		break;
	}
}

static void print_table(struct nps_model *m, FILE *out, const char *name)
{
	struct nps_table *table = table_of(m, name);

	for (size_t row = 0; table && row < table->len; row++) {
		fputs(name, out);
		for (uint32_t c = 0; c < table->ncolumns; c++) {
			fprintf(out, "\t%s=", table->columns[c].name);
			print_cell(m, out, nps_table__cells(table, c), table->columns[c].kind, row);
		}
		fputc('\n', out);
	}
}

static int derive(struct nps_model *m)
{
	int err = nps_derive__links(m);

	if (!err)
		err = nps_derive__steps(m);
	if (!err)
		err = nps_derive__overlap(m);
	return err ? err : nps_derive__comm(m);
}

/* The table NAME to OUT, or communication files into the directory NAME. */
static int show(struct nps_model *m, FILE *out, const char *name)
{
	struct nps_export ex = { .model = m, .formats = NPS_FORMAT_TEXT, .generation = m->generation };
	int dirfd, err;

	if (!strchr(name, '/')) {
		print_table(m, out, name);
		return 0;
	}
	dirfd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return -errno;
	err = nps_export__communication(&ex, dirfd);
	close(dirfd);
	return err;
}

/* Reads rows from IN, derives, shows NAMES. 0 or negative errno. */
static int run(FILE *in, FILE *out, char **names, enum nps_generation generation)
{
	struct nps_model m;
	char line[65536];
	int err = nps_model__init(&m, AT_FDCWD, NULL);

	if (err)
		return err;
	m.generation = generation;
	while (!err && fgets(line, sizeof(line), in))
		err = read_row(&m, line);
	m.comm_analyzed = m.comm_time.t.len > 0;
	if (!err)
		err = derive(&m);
	for (; !err && *names; names++)
		err = show(&m, out, *names);
	nps_model__free(&m);
	return err;
}

static void kernels_in_and_out(void **state)
{
	char rows[] = "device\tid=3\n"
		      "step\tid=7\tstart=1000\tend=9000\n"
		      "task\tstart=2000\tend=3000\tdevice=3\tclass=1\tconnection=4294967295\n"
		      "task\tstart=4000\tend=5500\tdevice=3\tclass=1\tconnection=4294967295\n";
	char *names[] = { "step_trace", NULL }, *text = NULL;
	size_t len;
	FILE *in = fmemopen(rows, sizeof(rows) - 1, "r"), *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(in);
	assert_non_null(out);
	assert_int_equal(run(in, out, names, NPS_GENERATION_A), 0);
	fclose(in);
	fclose(out);
	assert_string_equal(text,
			    "step_trace\tdevice=3\tstep=7\tcomputing=2.5\tnot_overlapped=0\toverlapped=0"
			    "\tcommunication=0\tfree=1\tstage=3.5\tbubble=0\texclude_receive=0"
			    "\tpreparing=1\n");
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kernels_in_and_out) };
	int err;

	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	err = run(stdin, stdout, argv + 1, NPS_GENERATION_A);
	if (err)
		fprintf(stderr, "%s: %s\n", argv[0], strerror(-err));
	return err ? 1 : 0;
}
