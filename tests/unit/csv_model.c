/* SPDX-License-Identifier: BSD-2-Clause */
#include "csv_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t csv_model_text(struct csv_model *f, const char *bytes)
{
	return nps_strings__addz(f->m.strings, bytes);
}

size_t csv_model_row(struct nps_table *table)
{
	size_t at = 0;

	assert_int_equal(nps_table__add(table, &at), 0);
	return at;
}

void csv_model_no_texts(struct nps_table *table, size_t at)
{
	for (size_t i = 0; i < table->ncolumns; i++)
		if (table->columns[i].kind == NPS_COLUMN_text)
			((uint32_t *)nps_table__cells(table, i))[at] = NPS_NONE;
}

size_t csv_model_task(struct csv_model *f, uint64_t start, uint64_t end, uint32_t device, uint32_t connection)
{
	struct nps_task_table *t = &f->m.task;
	size_t at = csv_model_row(&t->t);

	csv_model_no_texts(&t->t, at);
	t->start[at] = CSV_MODEL_T0 + start;
	t->end[at] = CSV_MODEL_T0 + end;
	t->device[at] = device;
	t->connection[at] = connection;
	t->model[at] = t->context[at] = NPS_NO_ID;
	t->stream[at] = 2;
	t->task[at] = 100 + at;
	t->step[at] = NPS_NONE;
	return at;
}

size_t csv_model_kernel(struct csv_model *f, uint64_t start, uint64_t end, uint32_t device, const char *type,
			const char *core)
{
	size_t at = csv_model_task(f, start, end, device, 7 + f->m.compute.t.len),
	       c = csv_model_row(&f->m.compute.t);
	struct nps_compute_table *k = &f->m.compute;

	csv_model_no_texts(&k->t, c);
	f->m.task.class[at] = NPS_CLASS_COMPUTE;
	f->m.task.type[at] = csv_model_text(f, "KERNEL_AICORE");
	f->m.task.hw_type[at] = csv_model_text(f, core);
	k->task[c] = at;
	k->type[c] = csv_model_text(f, type);
	k->core[c] = csv_model_text(f, core);
	k->name[c] = f->m.task.name[at] = csv_model_text(f, "aclnn, \"odd\"\tname");
	k->blocks[c] = 20;
	return at;
}

void csv_model_collective(struct csv_model *f, uint64_t start, uint64_t end, uint32_t device)
{
	struct nps_comm_op_table *op = &f->m.comm_op;
	size_t at = csv_model_row(&op->t);

	csv_model_no_texts(&op->t, at);
	op->name[at] = csv_model_text(f, "hcom_allReduce__123_0_1");
	op->type[at] = csv_model_text(f, "hcom_allReduce_");
	op->start[at] = CSV_MODEL_T0 + start;
	op->end[at] = CSV_MODEL_T0 + end;
	op->device[at] = device;
	op->model[at] = NPS_NO_ID;
	op->connection[at] = 900;
	op->step[at] = NPS_NONE;
}

int csv_model_setup(void **state)
{
	struct csv_model *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/npuscope-csv-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	assert_true(f->fd >= 0);
	assert_int_equal(nps_model__init(&f->m, f->fd, NULL), 0);
	f->m.level = 1;
	f->ex = (struct nps_export){ .model = &f->m,
				     .generation = NPS_GENERATION_B,
				     .stamp = "20240101120000" };
	*state = f;
	return 0;
}

void csv_model_empty_dir(struct csv_model *f)
{
	DIR *dir = fdopendir(openat(f->fd, ".", O_RDONLY | O_DIRECTORY));

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.')
			assert_int_equal(unlinkat(f->fd, e->d_name, 0), 0);
	closedir(dir);
}

int csv_model_teardown(void **state)
{
	struct csv_model *f = *state;

	csv_model_empty_dir(f);
	nps_model__free(&f->m);
	close(f->fd);
	rmdir(f->dir);
	free(f->text);
	free(f);
	return 0;
}

bool csv_model_exists(struct csv_model *f, const char *name)
{
	return !faccessat(f->fd, name, F_OK, 0);
}

const char *csv_model_read(struct csv_model *f, const char *name)
{
	int fd = openat(f->fd, name, O_RDONLY);
	struct stat st;

	if (fd < 0)
		fail_msg("%s is missing", name);
	assert_int_equal(fstat(fd, &st), 0);
	free(f->text);
	f->text = calloc(1, st.st_size + 1);
	assert_non_null(f->text);
	assert_int_equal(read(fd, f->text, st.st_size), st.st_size);
	close(fd);
	return f->text;
}

const char *csv_model_rows(struct csv_model *f, const char *name)
{
	const char *bytes = strchr(csv_model_read(f, name), '\n');

	assert_non_null(bytes);
	return bytes + 1;
}

void csv_model_torch(struct csv_model *f, enum nps_generation generation)
{
	csv_model_empty_dir(f);
	f->ex.generation = generation;
	assert_int_equal(nps_export__torch_csv(&f->ex, f->fd), 0);
}
