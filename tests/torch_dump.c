/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the importer of PyTorch profiler data makes of a directory: each row of each table that has any as one
 * line of JSON, with what was lost. With --links the connections are derived before.
 *
 * Usage: torch_dump [--links] [--quiet] DIRECTORY
 */
#include "base/json_writer.h"
#include "derive/derive.h"
#include "import/import.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void put_cell(struct nps_writer *w, const struct nps_model *m, const struct nps_table *t,
		     size_t column, size_t row)
{
	const void *cells = nps_table__cells(t, column);

	switch (t->columns[column].kind) {
	case NPS_COLUMN_u8:
		nps_writer__u64(w, ((const uint8_t *)cells)[row]);
		break;
	case NPS_COLUMN_u16:
		nps_writer__u64(w, ((const uint16_t *)cells)[row]);
		break;
	case NPS_COLUMN_u32:
		nps_writer__u64(w, ((const uint32_t *)cells)[row]);
		break;
	case NPS_COLUMN_u64:
	case NPS_COLUMN_time:
		nps_writer__u64(w, ((const uint64_t *)cells)[row]);
		break;
	case NPS_COLUMN_i64:
		if (((const int64_t *)cells)[row] == NPS_NULL)
			nps_writer__lit(w, "null");
		else
			nps_writer__i64(w, ((const int64_t *)cells)[row]);
		break;
	case NPS_COLUMN_f64:
		nps_writer__number(w, ((const double *)cells)[row]);
		break;
	case NPS_COLUMN_text:
		if (((const uint32_t *)cells)[row] == NPS_NONE)
			nps_writer__lit(w, "null");
		else
			nps_writer__json(w, nps_model__text(m, ((const uint32_t *)cells)[row]));
		break;
	}
}

static void put_table(struct nps_writer *w, const struct nps_model *m, const struct nps_table *t,
		      const char *name)
{
	struct nps_pace pace = { .model = m };

	for (size_t row = 0; row < t->len; row++, nps_pace__step(&pace)) {
		nps_writer__lit(w, "{\"table\":");
		nps_writer__json(w, name);
		for (size_t column = 0; column < t->ncolumns; column++) {
			nps_writer__lit(w, ",");
			nps_writer__json(w, t->columns[column].name);
			nps_writer__lit(w, ":");
			put_cell(w, m, t, column, row);
		}
		nps_writer__lit(w, "}\n");
	}
}

static void put_model(struct nps_writer *w, const struct nps_model *m)
{
	nps_writer__lit(w, "{\"table\":\"model\",\"pid\":");
	nps_writer__u64(w, m->pid);
	nps_writer__lit(w, ",\"level\":");
	nps_writer__u64(w, m->level);
	nps_writer__lit(w, ",\"rank\":");
	nps_writer__i64(w, m->has_rank ? (int64_t)m->rank : -1);
	nps_writer__lit(w, ",\"info\":");
	nps_writer__u64(w, m->info != NULL);
	nps_writer__lit(w, ",\"metadata\":");
	nps_writer__u64(w, m->metadata != NULL);
	nps_writer__lit(w, ",\"start\":");
	nps_writer__u64(w, m->start);
	nps_writer__lit(w, ",\"end\":");
	nps_writer__u64(w, m->end);
	nps_writer__lit(w, "}\n");
	for (size_t i = 0; i < m->losses.len; i++) {
		const struct nps_lost *lost = &NPS_AT(&m->losses, struct nps_lost, i);

		nps_writer__lit(w, "{\"table\":\"lost\",\"what\":");
		nps_writer__json(w, lost->what);
		nps_writer__lit(w, ",\"count\":");
		nps_writer__u64(w, lost->count);
		nps_writer__lit(w, "}\n");
	}
#define OWN(field, COLUMNS) put_table(w, m, &m->field.t, #field);
	NPS_OWN_TABLES(OWN)
}

static int dump(const struct nps_model *m)
{
	char name[] = "torch_dump.XXXXXX", dir[] = "/tmp/torch_dump.XXXXXX", bytes[1 << 16];
	struct nps_writer w;
	int dirfd, err;
	size_t got;
	FILE *file;

	dirfd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dirfd < 0)
		return -1;
	err = nps_writer__open(&w, dirfd, name);
	if (!err) {
		put_model(&w, m);
		err = nps_writer__close(&w);
	}
	file = err ? NULL : fdopen(openat(dirfd, name, O_RDONLY | O_CLOEXEC), "r");
	while (file && (got = fread(bytes, 1, sizeof(bytes), file)))
		if (fwrite(bytes, 1, got, stdout) != got)
			err = -1;
	if (file)
		fclose(file);
	unlinkat(dirfd, name, 0);
	close(dirfd);
	rmdir(dir);
	return err || fflush(stdout) ? -1 : 0;
}

int main(int argc, char **argv)
{
	bool links = false, quiet = false;
	struct nps_model m;
	int tmpfd, err;

	for (; argc > 2; argc--, argv++) {
		links |= !strcmp(argv[1], "--links");
		quiet |= !strcmp(argv[1], "--quiet");
	}
	if (argc != 2)
		return 2;
	tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = tmpfd < 0 ? -1 : nps_model__init(&m, tmpfd, NULL);
	if (err)
		return 1;
	err = nps_import__torch(&m, argv[1]);
	if (!err && links)
		err = nps_derive__links(&m);
	if (!err && !quiet)
		err = dump(&m);
	nps_model__free(&m);
	close(tmpfd);
	return err ? 1 : 0;
}
