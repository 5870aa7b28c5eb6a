/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "export/export.h"

static char folder[64];
static int folder_fd = -1;

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_folded.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder_fd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlinkat(folder_fd, "npuscope.folded", 0);
	unlinkat(folder_fd, "npuscope_device.folded", 0);
	close(folder_fd);
	return rmdir(folder);
}

static void call(struct nps_model *m, uint64_t gtid, const char *name, uint64_t start, uint64_t end,
		 uint32_t connection)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->api.t, &row), 0);
	m->api.start[row] = start;
	m->api.end[row] = end;
	m->api.gtid[row] = gtid;
	m->api.name[row] = nps_strings__addz(m->strings, name);
	m->api.connection[row] = connection;
}

static void task(struct nps_model *m, uint64_t ns, uint32_t connection, uint8_t class, uint8_t source)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->task.t, &row), 0);
	m->task.start[row] = 1000;
	m->task.end[row] = 1000 + ns;
	m->task.connection[row] = connection;
	m->task.class[row] = class;
	m->task.source[row] = source;
}

static void assert_file(const char *name, const char *content)
{
	char text[256] = "";
	int fd = openat(folder_fd, name, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, content);
}

static void stacks_and_their_time(void **state)
{
	struct nps_model m;
	struct nps_export ex = { .model = &m };

	(void)state;
	assert_int_equal(nps_model__init(&m, folder_fd, NULL), 0);
	call(&m, 1, "outer;x", 1000, 101000, 5);
	call(&m, 2, "other", 1000, 4000, NPS_NO_ID);
	call(&m, 1, "inner", 11000, 31000, 6);
	for (uint32_t i = 0, depth = 700; i < depth; i++) /* deeper than any stack that is kept */
		call(&m, 3, "deep", 200000 + i, 900000 - i, NPS_NO_ID);
	task(&m, 9000, 6, NPS_CLASS_PARENT, NPS_TIME_IMPORTED); /* of the next two */
	task(&m, 4000, 6, NPS_CLASS_COMPUTE, NPS_TIME_IMPORTED);
	task(&m, 3000, 6, NPS_CLASS_COMM, NPS_TIME_DEVICE_LOG);
	task(&m, 50000, 6, NPS_CLASS_COMPUTE, NPS_TIME_HOST_BOUNDS);
	task(&m, 2000, 5, NPS_CLASS_MEMCPY, NPS_TIME_IMPORTED);
	assert_int_equal(nps_export__folded(&ex, folder_fd), 0);
	assert_file("npuscope_device.folded", "outer:x 2\nouter:x;inner 7\n");
	nps_model__free(&m);
}

static void frame(struct nps_model *m, const char *name, uint64_t start, uint64_t end)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->torch.t, &row), 0);
	m->torch.type[row] = NPS_API_PYTHON;
	m->torch.start[row] = start;
	m->torch.end[row] = end;
	m->torch.gtid[row] = 1;
	m->torch.name[row] = nps_strings__addz(m->strings, name);
}

/* Databases have Python's frames by their end, the innermost first. */
static void frames_by_their_end(void **state)
{
	struct nps_model m;
	struct nps_export ex = { .model = &m };

	(void)state;
	unlinkat(folder_fd, "npuscope.folded", 0);
	unlinkat(folder_fd, "npuscope_device.folded", 0);
	assert_int_equal(nps_model__init(&m, folder_fd, NULL), 0);
	frame(&m, "leaf", 30000, 40000);
	frame(&m, "first", 10000, 50000);
	frame(&m, "second", 60000, 90000);
	frame(&m, "main", 10000, 110000);
	frame(&m, "half recorded", 0, 110000); /* its start is not known, and so its length is not */
	call(&m, 1, "launch", 70000, 75000, 3);
	task(&m, 4000, 3, NPS_CLASS_COMPUTE, NPS_TIME_IMPORTED);
	assert_int_equal(nps_export__folded(&ex, folder_fd), 0);
	assert_file("npuscope.folded", "main 30\nmain;first 30\nmain;first;leaf 10\nmain;second 25\n"
				       "main;second;launch 5\n");
	assert_file("npuscope_device.folded", "main;second;launch 4\n");
	nps_model__free(&m);
}

/* A small file can have very many threads. */
static void many_threads(void **state)
{
	struct nps_model m;
	struct nps_export ex = { .model = &m };
	struct rusage before, after;

	(void)state;
	unlinkat(folder_fd, "npuscope.folded", 0);
	assert_int_equal(nps_model__init(&m, folder_fd, NULL), 0);
	for (uint64_t i = 0; i < 100000; i++)
		call(&m, i, "call", 1000 + i, 2000 + i, NPS_NO_ID);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(nps_export__folded(&ex, folder_fd), 0);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 200 << 10);
	assert_file("npuscope.folded", "call 100000\n");
	nps_model__free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_and_their_time),
		cmocka_unit_test(frames_by_their_end),
		cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
