/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what the import of a PROF_* directory made, as JSON lines: a row of a table each, texts as texts.
 * The last line is about the model itself. With --quiet only that line.
 *
 *   cann_dump [--quiet] PROF_DIR
 */
#include "base/util.h"
#include "import/import.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_cell(const struct nps_model *m, const struct nps_column *column, const void *cells,
		       size_t row)
{
	double number;

	switch ((enum nps_column_kind)column->kind) {
	case NPS_COLUMN_u8:
		printf("%u", ((const uint8_t *)cells)[row]);
		break;
	case NPS_COLUMN_u16:
		printf("%u", ((const uint16_t *)cells)[row]);
		break;
	case NPS_COLUMN_u32:
		printf("%" PRIu32, ((const uint32_t *)cells)[row]);
		break;
	case NPS_COLUMN_u64:
	case NPS_COLUMN_time:
		printf("%" PRIu64, ((const uint64_t *)cells)[row]);
		break;
	case NPS_COLUMN_i64:
		if (((const int64_t *)cells)[row] == NPS_NULL)
			printf("null");
		else
			printf("%" PRId64, ((const int64_t *)cells)[row]);
		break;
	case NPS_COLUMN_f64:
		number = ((const double *)cells)[row];
		if (isfinite(number))
			printf("%.17g", number);
		else
			printf("null");
		break;
	case NPS_COLUMN_text:
		if (((const uint32_t *)cells)[row] == NPS_NONE)
			printf("null");
		else
			print_text(nps_model__text(m, ((const uint32_t *)cells)[row]));
		break;
	}
}

static void print_table(const struct nps_model *m, const char *name, const struct nps_table *table)
{
	for (size_t row = 0; row < table->len; row++) {
		printf("{\"t\":\"%s\"", name);
		for (uint32_t i = 0; i < table->ncolumns; i++) {
			printf(",\"%s\":", table->columns[i].name);
			print_cell(m, &table->columns[i], nps_table__cells(table, i), row);
		}
		puts("}");
	}
}

static void print_model(const struct nps_model *m)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("{\"t\":\"model\",\"pid\":%u,\"level\":%u,\"rank\":%u,\"has_rank\":%s,\"start\":%" PRIu64
	       ",\"end\":%" PRIu64 ",\"rows\":{",
	       m->pid, m->level, m->rank, m->has_rank ? "true" : "false", m->start, m->end);
	printf("\"task\":%zu,\"api\":%zu,\"comm_op\":%zu,\"comm_task\":%zu,\"pmu\":%zu}", m->task.t.len,
	       m->api.t.len, m->comm_op.t.len, m->comm_task.t.len, m->pmu.t.len);
	printf(",\"cpu_s\":%.3f,\"rss_kb\":%ld,\"losses\":{",
	       usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
		       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
	       usage.ru_maxrss);
	for (size_t i = 0; i < m->losses.len; i++) {
		const struct nps_lost *loss = &NPS_AT(&m->losses, struct nps_lost, i);

		if (i)
			putchar(',');
		print_text(loss->what);
		printf(":%" PRIu64, loss->count);
	}
	puts("}}");
}

int main(int argc, char **argv)
{
	bool quiet = argc > 1 && !strcmp(argv[1], "--quiet");
	const char *tmp = getenv("TMPDIR");
	struct nps_model model;
	int fd, err;

	if (argc != 2 + quiet) {
		fprintf(stderr, "usage: cann_dump [--quiet] PROF_DIR\n");
		return 2;
	}
	fd = open(tmp ? tmp : "/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || nps_model__init(&model, fd, NULL)) {
		perror("cann_dump");
		return 1;
	}
	err = nps_import__cann(&model, argv[1 + quiet]);
	if (!err && !quiet) {
#define PRINT(field, ...) print_table(&model, #field, &model.field.t);
		NPS_OWN_TABLES(PRINT)
		NPS_SHARED_TABLES(PRINT)
	}
	if (!err)
		print_model(&model);
	nps_model__free(&model);
	close(fd);
	return err ? 1 : 0;
}
