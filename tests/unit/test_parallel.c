/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of several processes of a session do not depend on how many are made at once. */
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

#include "analyze.h"
#include "base/util.h"
#include "gen_session.h"

#define TEXTS 8000 /* together more than a string table keeps in memory */
#define CALLS 60000

/* Each of two processes makes system calls that the other does not: new texts in an order of its own. */
static void make_session(const char *dir)
{
	struct gen gen;

	gen_open(&gen, dir);
	for (unsigned int i = 0; i < TEXTS; i++) {
		char text[80];

		snprintf(text, sizeof(text), "kernel_%u_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopq", i);
		gen_text(&gen, text);
	}
	for (unsigned int rank = 0; rank < 2; rank++) {
		uint32_t pid = 4000 + rank * 100;
		uint64_t now = GEN_T0 + 5000000;

		gen_comm(&gen, pid, GEN_T0, "python3");
		gen_api(&gen, pid, pid, NPS_PROBE_SET_DEVICE, now, now + 900, rank, 0, 0, 0);
		for (unsigned int i = 0; i < CALLS; i++) {
			now += 3000;
			gen_event(&gen, &(struct nps_event){ .kind = NPS_EV_SYSCALL,
							     .nr = rank * 150 + i / (CALLS / 150),
							     .pid = pid,
							     .tid = pid,
							     .start = now,
							     .dur = 700 });
		}
	}
	gen_clock(&gen, GEN_T0);
	gen_clock(&gen, GEN_T0 + 1000000000);
	gen_close(&gen, true,
		  "{\"pid\":4000,\"comm\":\"python3\",\"rank\":0},{\"pid\":4100,\"comm\":\"python3\","
		  "\"rank\":1}",
		  "{\"id\":0,\"freq_khz\":50000,\"chip\":\"Ascend910B\"},"
		  "{\"id\":1,\"freq_khz\":50000,\"chip\":\"Ascend910B\"}",
		  NULL);
}

static char *read_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY);
	struct stat st;
	char *text;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	text = calloc(1, st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(read(fd, text, st.st_size), st.st_size);
	close(fd);
	return text;
}

static void same_trace(const char *one, const char *other)
{
	int a = open(one, O_RDONLY | O_DIRECTORY), b = open(other, O_RDONLY | O_DIRECTORY);
	DIR *dir = opendir(one);
	unsigned int results = 0;

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		char name[400], *x, *y;

		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/ASCEND_PROFILER_OUTPUT/trace_view.json", e->d_name);
		x = read_file(a, name);
		y = read_file(b, name);
		assert_true(strlen(x) > CALLS * 50);
		assert_true(!strcmp(x, y)); /* too long to be printed */
		free(x);
		free(y);
		results++;
	}
	assert_int_equal(results, 2);
	closedir(dir);
	close(a);
	close(b);
}

static void the_number_of_processes_changes_nothing(void **state)
{
	struct nps_analyze_opts opts = { .size = sizeof(opts), .formats = NPS_FORMAT_TEXT };
	char *session = gen_temp_dir(), *out[2];

	(void)state;
	make_session(session);
	for (unsigned int i = 0; i < NPS_ARRAY_SIZE(out); i++) {
		out[i] = gen_temp_dir();
		opts.output = out[i];
		opts.processes = i + 1;
		opts.progress = NPS_PROGRESS_NEVER;
		assert_int_equal(nps_analyze(session, &opts, NULL), 0);
	}
	same_trace(out[0], out[1]);
	gen_remove(session);
	gen_remove(out[0]);
	gen_remove(out[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_number_of_processes_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
