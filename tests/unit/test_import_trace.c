/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces made by hand: whose events are what, and where the rank comes from. */
#include "import.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static int folder_fd = -1;

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/nps_trace_XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder_fd < 0 ? -1 : mkdirat(folder_fd, "out", 0700);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	close(folder_fd);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put(const char *name, const char *text)
{
	int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void import_as(struct nps_model *m, const char *path)
{
	assert_int_equal(nps_model__init(m, folder_fd, NULL), 0);
	assert_int_equal(nps_import__trace(m, path), 0);
}

/* Imports the trace TEXT, which lies in the folder "out". */
static void import(struct nps_model *m, const char *text)
{
	char path[128];

	put("out/trace_view.json", text);
	snprintf(path, sizeof(path), "%s/out/trace_view.json", folder);
	import_as(m, path);
}

static void only_named_layers_are_read(void **state)
{
	struct nps_model m;

	(void)state;
	/* 102623 is (100 << 10) | (6 << 5) | 31: the lane of ranges, named after the application */
	import(&m, "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":100,\"tid\":0,\"args\":{\"name\":"
		   "\"Python\"}},"
		   "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":102623,\"tid\":0,\"args\":{\"name\":"
		   "\"python3\"}},"
		   "{\"ph\":\"X\",\"name\":\"range\",\"pid\":102623,\"tid\":5,\"ts\":\"1736408883676317.0\","
		   "\"dur\":100},"
		   "{\"ph\":\"X\",\"name\":\"no "
		   "layer\",\"pid\":7,\"tid\":5,\"ts\":\"1736408883676318.0\",\"dur\":1},"
		   "{\"ph\":\"X\",\"name\":\"aten::add\",\"cat\":\"cpu_op\",\"pid\":100,\"tid\":5,"
		   "\"ts\":\"1736408883676320.0\",\"dur\":10,\"args\":{}}]");
	assert_int_equal(m.torch.t.len, 2);
	assert_string_equal(nps_model__text(&m, m.torch.name[0]), "no layer");
	assert_string_equal(nps_model__text(&m, m.torch.name[1]), "aten::add");
	assert_int_equal(m.losses.len, 1);
	assert_int_equal(NPS_AT(&m.losses, struct nps_lost, 0).count, 1);
	nps_model__free(&m);
}

/* The rank of the trace as it is named from its own directory and from elsewhere; -1: none. */
static int rank_of_trace(void)
{
	struct nps_model near, far;
	char path[128];
	int cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rank;

	put("out/trace_view.json", "[]");
	snprintf(path, sizeof(path), "%s/out", folder);
	assert_int_equal(chdir(path), 0);
	import_as(&near, "trace_view.json");
	assert_int_equal(fchdir(cwd), 0);
	close(cwd);
	snprintf(path, sizeof(path), "%s/out/../out/trace_view.json", folder);
	import_as(&far, path);
	assert_int_equal(near.has_rank, far.has_rank);
	assert_int_equal(near.rank, far.rank);
	rank = near.has_rank ? (int)near.rank : -1;
	nps_model__free(&near);
	nps_model__free(&far);
	return rank;
}

static void the_rank_is_that_of_the_only_info(void **state)
{
	(void)state;
	assert_int_equal(rank_of_trace(), -1);
	put("profiler_info_7.json", "{}");
	put("profiler_info_8.json.bak", "{}");
	put("profiler_info_.json", "{}");
	assert_int_equal(rank_of_trace(), 7);
	put("profiler_info_9.json", "{}");
	assert_int_equal(rank_of_trace(), -1);
	put("out/profiler_info_3.json", "{}"); /* nearer */
	assert_int_equal(rank_of_trace(), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(only_named_layers_are_read),
		TEST(the_rank_is_that_of_the_only_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
