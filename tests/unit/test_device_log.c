/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the records of a task log to runs: what is open at once is
 * distinguished, and what was lost stays its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen_session.h"
#include "import/cann/device_records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TASK_START 0x00
#define CONTEXT_START 0x22
#define END 1 /* added to either */
#define WHOLE UINT32_MAX

struct log {
	char *dir;
	FILE *file;
	unsigned int sequence;
	struct nps_model model;
	struct nps_cann_capture capture;
};

static int setup(void **state)
{
	struct log *log = calloc(1, sizeof(*log));
	char path[4096];

	assert_non_null(log);
	log->dir = gen_temp_dir();
	snprintf(path, sizeof(path), "%s/stars_soc.data.0.slice_0", log->dir);
	log->file = fopen(path, "w");
	assert_non_null(log->file);
	*state = log;
	return 0;
}

static int teardown(void **state)
{
	struct log *log = *state;

	nps_cann_capture__free(&log->capture);
	nps_model__free(&log->model);
	gen_remove(log->dir);
	free(log);
	return 0;
}

static void put(uint8_t *p, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> 8 * i);
}

/* A start, or with END in FUNCTION an end, of TASK in stream 3 at COUNT. */
static void record(struct log *log, unsigned int function, uint32_t task, uint32_t context, uint32_t thread,
		   uint64_t count)
{
	uint8_t p[64] = { 0 };

	put(p, function | (log->sequence++ & 0xf) << 6, 2);
	put(p + 2, 0x6bd3, 2);
	put(p + 4, 3, 2);
	put(p + 6, task, 2);
	put(p + 8, count, 8);
	put(p + 16, 6, 1);
	put(p + 18, context, 2);
	put(p + 20, 4 << 13, 2);
	put(p + 22, thread, 2);
	assert_int_equal(fwrite(p, sizeof(p), 1, log->file), 1);
}

static void read_all(struct log *log)
{
	struct nps_cann_dir *dir = calloc(1, sizeof(*dir));

	assert_non_null(dir);
	fclose(log->file);
	assert_int_equal(nps_model__init(&log->model, AT_FDCWD, NULL), 0);
	nps_cann_capture__init(&log->capture, &log->model);
	*dir = (struct nps_cann_dir){ .fd = -1,
				      .datafd = open(log->dir, O_RDONLY | O_DIRECTORY),
				      .chip = NPS_CHIP_910B };
	dir->device_clock = (struct nps_cann_clock){ .known = true, .hz = NPS_NS_PER_S };
	log->capture.devices = dir;
	log->capture.ndevices = 1;
	assert_int_equal(nps_slices__open(&dir->files, dir->datafd), 0);
	assert_int_equal(nps_cann_capture__devices(&log->capture), 0);
}

/* Run I, in order of starts. */
static void assert_run(const struct log *log, size_t i, uint32_t task, uint32_t context, uint64_t start,
		       uint64_t end)
{
	const struct nps_cann_run *run;

	assert_true(i < log->capture.runs.len);
	run = &NPS_AT(&log->capture.runs, struct nps_cann_run, i);
	assert_int_equal(run->stream, 3);
	assert_int_equal(run->task, task);
	assert_int_equal(run->context, context == WHOLE ? NPS_NO_CONTEXT : context);
	assert_int_equal(run->start, start);
	assert_int_equal(run->end, end);
}

static void contexts_overlap(void **state)
{
	struct log *log = *state;
	const struct nps_log_counts *n = &log->capture.log_counts;

	record(log, TASK_START, 7, 0, 0, 1000);
	record(log, CONTEXT_START, 7, 0, 0, 1010);
	record(log, CONTEXT_START, 7, 1, 0, 1020);
	record(log, CONTEXT_START, 7, 0, 1, 1030);
	record(log, CONTEXT_START, 7, 1, 1, 1040);
	record(log, CONTEXT_START, 7, 0, 2, 1050);
	record(log, CONTEXT_START + END, 7, 1, 1, 1100);
	record(log, CONTEXT_START + END, 7, 0, 2, 1110);
	record(log, CONTEXT_START + END, 7, 0, 0, 1120);
	record(log, CONTEXT_START + END, 7, 1, 0, 1130);
	record(log, CONTEXT_START + END, 7, 0, 1, 1140);
	record(log, TASK_START + END, 7, 0, 0, 1200);
	read_all(log);
	assert_int_equal(log->capture.runs.len, 3);
	assert_run(log, 0, 7, WHOLE, 1000, 1200);
	assert_run(log, 1, 7, 0, 1010, 1140);
	assert_run(log, 2, 7, 1, 1020, 1130);
	assert_true(!n->no_end && !n->no_start && !n->repeated && !n->open);
}

/* The next task of the stream has begun before all contexts of the one before have ended. */
static void tasks_overlap(void **state)
{
	struct log *log = *state;

	record(log, TASK_START, 7, 0, 0, 1000);
	record(log, CONTEXT_START, 7, 0, 0, 1010);
	record(log, TASK_START, 8, 0, 0, 1050);
	record(log, CONTEXT_START, 8, 0, 0, 1060);
	record(log, CONTEXT_START + END, 7, 0, 0, 1070);
	record(log, TASK_START + END, 7, 0, 0, 1080);
	record(log, CONTEXT_START + END, 8, 0, 0, 1090);
	record(log, TASK_START + END, 8, 0, 0, 1100);
	read_all(log);
	assert_int_equal(log->capture.runs.len, 4);
	assert_run(log, 0, 7, WHOLE, 1000, 1080);
	assert_run(log, 1, 7, 0, 1010, 1070);
	assert_run(log, 2, 8, WHOLE, 1050, 1100);
	assert_run(log, 3, 8, 0, 1060, 1090);
}

/* A thread whose end was lost does not swallow the next run of a task of the same id. */
static void a_lost_end_of_a_thread(void **state)
{
	struct log *log = *state;

	record(log, TASK_START, 7, 0, 0, 1000);
	record(log, CONTEXT_START, 7, 0, 0, 1010);
	record(log, CONTEXT_START, 7, 0, 1, 1020);
	record(log, CONTEXT_START + END, 7, 0, 0, 1090);
	record(log, TASK_START + END, 7, 0, 0, 1100);
	record(log, TASK_START, 7, 0, 0, 9000);
	record(log, CONTEXT_START, 7, 0, 0, 9010);
	record(log, CONTEXT_START, 7, 0, 1, 9020);
	record(log, CONTEXT_START + END, 7, 0, 0, 9080);
	record(log, CONTEXT_START + END, 7, 0, 1, 9090);
	record(log, TASK_START + END, 7, 0, 0, 9100);
	read_all(log);
	assert_int_equal(log->capture.runs.len, 4);
	assert_run(log, 1, 7, 0, 1010, 1090);
	assert_run(log, 2, 7, WHOLE, 9000, 9100);
	assert_run(log, 3, 7, 0, 9010, 9090);
	assert_int_equal(log->capture.log_counts.open, 1);
}

/* An end that is none of what is open, and threads whose numbers are beyond what is distinguished. */
static void strange_threads(void **state)
{
	struct log *log = *state;

	record(log, CONTEXT_START, 7, 0, 5, 1000);
	record(log, CONTEXT_START + END, 7, 0, 6, 1010);
	record(log, CONTEXT_START + END, 7, 0, 5, 1020);
	record(log, CONTEXT_START, 7, 0, 65535, 1030);
	record(log, CONTEXT_START + END, 7, 0, 65535, 1040);
	read_all(log);
	assert_int_equal(log->capture.runs.len, 2);
	assert_run(log, 0, 7, 0, 1000, 1020);
	assert_run(log, 1, 7, 0, 1030, 1040);
	assert_int_equal(log->capture.log_counts.no_start, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(contexts_overlap),
		TEST(tasks_overlap),
		TEST(a_lost_end_of_a_thread),
		TEST(strange_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
