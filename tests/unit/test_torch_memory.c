/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory rows when CANN's own operators were imported before (outputs 8: C10, C11, D12). */
#include "import/import.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE 1000000000000ULL
#define UNIX 1736408883000000000ULL

struct fixture {
	char dir[64];
	int tmpfd, dirfd, framework;
	struct nps_model model;
};

static int set_up(void **state)
{
	static struct fixture f;

	snprintf(f.dir, sizeof(f.dir), "/tmp/test_torch.XXXXXX");
	if (!mkdtemp(f.dir))
		return -1;
	f.tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f.dirfd = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	mkdirat(f.dirfd, "FRAMEWORK", 0700);
	f.framework = openat(f.dirfd, "FRAMEWORK", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &f;
	return f.framework < 0 || nps_model__init(&f.model, f.tmpfd, NULL);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	nps_model__free(&f->model);
	unlinkat(f->framework, "torch.memory_usage", 0);
	unlinkat(f->dirfd, "profiler_info.json", 0);
	unlinkat(f->dirfd, "FRAMEWORK", AT_REMOVEDIR);
	close(f->framework);
	close(f->dirfd);
	close(f->tmpfd);
	return rmdir(f->dir);
}

static void put_file(int dirfd, const char *name, const void *bytes, size_t len)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static void put_info(struct fixture *f)
{
	char text[300];
	int len = snprintf(text, sizeof(text),
			   "{\"start_info\":{\"syscnt_enable\":false,\"start_monotonic\":%llu},"
			   "\"end_info\":{\"collectionTimeEnd\":%llu,\"MonotonicTimeEnd\":%llu}}",
			   BASE, UNIX, BASE);

	put_file(f->dirfd, "profiler_info.json", text, len);
}

/* An event of the allocator at BASE + TIME; KIND 0 malloc, 1 free, 2 free of the block; TOTAL after it. */
static void put_event(struct fixture *f, int64_t time, uint8_t component, uint8_t kind, int64_t total)
{
	int64_t values[7] = { 0x1000, BASE + time, kind ? -512 : 512, total, 2 * total, total, 77 };
	uint8_t bytes[6 + 77] = { 3, 0, 77 };

	memcpy(bytes + 6, values, sizeof(values));
	bytes[6 + 56] = 20;
	bytes[6 + 58] = component;
	bytes[6 + 59] = kind;
	bytes[6 + 61] = 7;
	bytes[6 + 69] = 9;
	put_file(f->framework, "torch.memory_usage", bytes, sizeof(bytes));
}

static void add_cann(struct fixture *f, uint64_t time, const char *type, int64_t address, int64_t total)
{
	struct nps_npu_op_mem_table *t = &f->model.npu_op_mem;
	size_t row = 0;

	assert_int_equal(nps_table__add(&t->t, &row), 0);
	t->name[row] = nps_strings__addz(f->model.strings, "trans_TransData_0");
	t->type[row] = nps_strings__addz(f->model.strings, type);
	t->component[row] = nps_strings__addz(f->model.strings, "GE");
	t->address[row] = address;
	t->size[row] = 64;
	t->timestamp[row] = UNIX + time;
	t->allocated[row] = total;
	t->reserved[row] = 1000;
}

static void is_record(const struct fixture *f, size_t row, const char *component, uint64_t time,
		      int64_t allocated, int64_t reserved, int64_t active, int64_t stream)
{
	const struct nps_memory_record_table *t = &f->model.memory_record;

	assert_true(row < t->t.len);
	assert_string_equal(nps_model__text(&f->model, t->component[row]), component);
	assert_int_equal(t->timestamp[row], UNIX + time);
	assert_int_equal(t->allocated[row], allocated);
	assert_int_equal(t->reserved[row], reserved);
	assert_int_equal(t->active[row], active);
	assert_int_equal(t->stream[row], stream);
}

static void test_with_cann(void **state)
{
	struct fixture *f = *state;
	const struct nps_op_memory_table *t = &f->model.op_memory;

	put_info(f);
	add_cann(f, 5, "allocate", 1, 64);
	add_cann(f, 15, "allocate", 2, 128);
	add_cann(f, 25, "release", 1, 64);
	add_cann(f, 26, "release", 9, 64); /* allocated before the capture */
	put_event(f, 10, 0, 0, 100);
	put_event(f, 12, 1, 0, 5);
	put_event(f, 20, 0, 2, 90);
	put_event(f, 22, 0, 1, 90);
	assert_int_equal(nps_import__torch(&f->model, f->dir), 0);
	assert_int_equal(f->model.losses.len, 0);
	assert_false(f->model.has_rank);
	assert_int_equal(f->model.pid, 9);

	assert_int_equal(f->model.memory_record.t.len, 4 + 3 + 2 * 4);
	is_record(f, 0, "GE", 5, 64, 1000, 0, NPS_NULL);
	is_record(f, 1, "PTA+GE", 5, 64, 1000, 0, NPS_NULL);
	is_record(f, 2, "PTA", 10, 100, 200, 100, 77);
	is_record(f, 3, "PTA+GE", 10, 164, 1200, 100, 77);
	is_record(f, 4, "WORKSPACE", 12, 5, 10, 5, 77);
	is_record(f, 5, "GE", 15, 128, 1000, 0, NPS_NULL);
	is_record(f, 6, "PTA+GE", 15, 228, 1200, 100, 77);
	is_record(f, 7, "PTA", 20, 90, 180, 90, 77);
	is_record(f, 8, "PTA+GE", 20, 218, 1180, 90, 77);
	is_record(f, 12, "PTA+GE", 25, 154, 1180, 90, 77);

	/* The workspace took the address over, so that the frees are its own. */
	assert_int_equal(t->t.len, 4);
	assert_int_equal(t->allocation[0], UNIX + 10);
	assert_int_equal(t->release[0], NPS_NULL);
	assert_int_equal(t->allocation[1], UNIX + 12);
	assert_int_equal(t->release[1], UNIX + 22);
	assert_int_equal(t->active_release[1], UNIX + 20);
	assert_int_equal(t->duration[1], 10);
	assert_int_equal(t->active_duration[1], 8);

	/* CANN's: released ones, then the rest. */
	assert_string_equal(nps_model__text(&f->model, t->name[2]), "trans_TransData_0");
	assert_int_equal(t->allocation[2], UNIX + 5);
	assert_int_equal(t->release[2], UNIX + 25);
	assert_int_equal(t->duration[2], 20);
	assert_int_equal(t->active_release[2], NPS_NULL);
	assert_int_equal(t->allocation_allocated[2], 64);
	assert_int_equal(t->release_allocated[2], 64);
	assert_int_equal(t->release_active[2], NPS_NULL);
	assert_int_equal(t->stream[2], NPS_NULL);
	assert_int_equal(t->allocation[3], UNIX + 15);
	assert_int_equal(t->release[3], NPS_NULL);
}

/* The framework was not watched: CANN's memory alone makes no such tables. */
static void test_without_events(void **state)
{
	struct fixture *f = *state;

	put_info(f);
	add_cann(f, 5, "allocate", 1, 64);
	assert_int_equal(nps_import__torch(&f->model, f->dir), 0);
	assert_int_equal(f->model.memory_record.t.len, 0);
	assert_int_equal(f->model.op_memory.t.len, 0);
}

/* So many allocations that are never released that they are not all followed. */
static void test_leak(void **state)
{
	struct fixture *f = *state;
	size_t n = 1200000, size = 6 + 77;
	uint8_t *bytes = calloc(n, size);

	assert_non_null(bytes);
	put_info(f);
	for (size_t i = 0; i < n; i++) {
		int64_t values[7] = { 0x1000 + (int64_t)i * 512, BASE + i, 512, 1, 1, 1, 77 };
		uint8_t *p = bytes + i * size;

		p[0] = 3;
		p[2] = 77;
		memcpy(p + 6, values, sizeof(values));
		p[6 + 56] = 20;
	}
	put_file(f->framework, "torch.memory_usage", bytes, n * size);
	free(bytes);
	assert_int_equal(nps_import__torch(&f->model, f->dir), 0);
	assert_int_equal(f->model.op_memory.t.len, n);
	assert_int_equal(f->model.losses.len, 1);
}

/* What is no directory is an error; one without FRAMEWORK is not. */
static void test_paths(void **state)
{
	struct fixture *f = *state;
	char path[100];

	snprintf(path, sizeof(path), "%s/none", f->dir);
	assert_true(nps_import__torch(&f->model, path) < 0);
	assert_int_equal(nps_import__torch(&f->model, f->dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_with_cann, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_leak, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_paths, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
