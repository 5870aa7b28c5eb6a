/* SPDX-License-Identifier: BSD-2-Clause */
/* The task logs of a session's device, record by record, and what they become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen_session.h"
#include "import/session/import.h"
#include "import/session/sqe_types.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PID 42

struct fixture {
	char *dir;
	int dirfd, data;
	cJSON *json;
	struct nps_session rec;
	struct nps_map streams;
	struct nps_vec tasks; /* struct nps_log_task */
};

static int setup(void **state)
{
	static const char *const dirs[] = { "PROF", "PROF/device_0", "PROF/device_0/data" };
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->dir = gen_temp_dir();
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(dirs); i++)
		assert_int_equal(mkdirat(f->dirfd, dirs[i], 0700), 0);
	f->data = openat(f->dirfd, dirs[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->data >= 0);
	nps_session__init(&f->rec, f->dirfd, f->dirfd);
	nps_vec__init(&f->tasks, f->dirfd, sizeof(struct nps_log_task));
	f->json = cJSON_Parse("{\"prof_dir\": \"PROF\"}");
	nps_session__proc(&f->rec, PID)->json = f->json;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	nps_vec__free(&f->tasks);
	nps_session__free(&f->rec);
	cJSON_Delete(f->json);
	close(f->data);
	gen_remove(f->dir);
	free(f);
	return 0;
}

/* Reads the log of a device of CHIP; the tasks. */
static const struct nps_log_task *import(struct fixture *f, uint32_t chip)
{
	f->rec.devices[0].has_platform = true;
	f->rec.devices[0].platform = chip;
	assert_int_equal(nps_import__logs(&f->rec, &f->streams, &f->tasks), 0);
	return f->tasks.data;
}

static void put(uint8_t *record, size_t at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		record[at + i] = (uint8_t)(value >> 8 * i);
}

static void append(const struct fixture *f, const char *name, const void *record, size_t len)
{
	int fd = openat(f->data, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, record, len), len);
	close(fd);
}

enum { START = 0, END = 1, CONTEXT_START = 0x22, CONTEXT_END = 0x23, PMU_TASK = 0x28, PMU_BLOCK = 0x29 };

/* A record of stars_soc.data of task 7 on stream 3; TYPE of the task, or of the sub-task that CONTEXT is. */
static void stars(const struct fixture *f, unsigned int function, unsigned int type, unsigned int context,
		  uint64_t time)
{
	uint8_t r[64] = { 0 };

	put(r, 0, function | (function < CONTEXT_START ? type << 10 : 0), 2);
	put(r, 2, 0x6bd3, 2);
	put(r, 4, 3, 2);
	put(r, 6, 7, 2);
	put(r, 8, time, 8);
	put(r, 16, type, 1);
	put(r, 18, context, 2);
	append(f, "stars_soc.data.0.slice_0", r, sizeof(r));
}

/*
 * A record of its counters: of a context, of a mixed kernel's master cores or of one block of the other ones.
 */
static void counters(const struct fixture *f, unsigned int function, unsigned int context, uint64_t cycles,
		     uint64_t time)
{
	uint8_t r[128] = { 0 };

	put(r, 0, function, 2);
	put(r, 4, 3, 2);
	put(r, 6, 7, 2);
	put(r, 16, 6, 1);
	put(r, 18, context, 2);
	put(r, 20, function == PMU_BLOCK ? 1 : 0, 1);
	put(r, 21, 4 << 5, 1);
	put(r, 32, cycles, 8);
	put(r, 48, cycles / 2, 8);
	put(r, 120, time, 8);
	append(f, "ffts_profile.data.0.slice_0", r, sizeof(r));
}

static const struct nps_run_pmu *pmu_of(const struct fixture *f, const struct nps_log_task *task)
{
	assert_int_not_equal(task->pmu, NPS_NONE);
	return &NPS_AT(&f->rec.run_pmus, struct nps_run_pmu, task->pmu);
}

static void blocks_of_other_cores_are_counted(void **state)
{
	struct fixture *f = *state;
	const struct nps_log_task *task;

	stars(f, START, 0, 0, 1000);
	counters(f, PMU_BLOCK, 0, 10, 1900);
	counters(f, PMU_BLOCK, 0, 12, 1900);
	counters(f, PMU_BLOCK, 0, 14, 1900);
	counters(f, PMU_TASK, 0, 100, 2000);
	stars(f, END, 0, 0, 2000);
	task = import(f, NPS_CHIP_910B);
	assert_int_equal(f->tasks.len, 1);
	assert_int_equal(pmu_of(f, task)->main, 0);
	assert_int_equal(pmu_of(f, task)->cycles[0], 100);
	assert_int_equal(pmu_of(f, task)->cycles[1], 36);
	assert_int_equal(pmu_of(f, task)->blocks[0], 0);
	assert_int_equal(pmu_of(f, task)->blocks[1], 3);
}

/* A task of two contexts, each with counters of its own. */
static void counters_of_contexts_add_up(void **state)
{
	struct fixture *f = *state;
	const struct nps_log_task *task;

	stars(f, START, 0, 0, 1000);
	stars(f, CONTEXT_START, 6, 0, 1100);
	stars(f, CONTEXT_START, 6, 1, 1200);
	counters(f, PMU_TASK, 0, 100, 1500);
	stars(f, CONTEXT_END, 6, 0, 1500);
	counters(f, PMU_BLOCK, 1, 7, 1590);
	counters(f, PMU_TASK, 1, 40, 1600);
	stars(f, CONTEXT_END, 6, 1, 1600);
	stars(f, END, 0, 0, 2000);
	task = import(f, NPS_CHIP_910B);
	assert_int_equal(f->tasks.len, 1);
	assert_int_equal(task->end, 2000);
	assert_int_equal(pmu_of(f, task)->main, 0);
	assert_int_equal(pmu_of(f, task)->cycles[0], 140);
	assert_int_equal(pmu_of(f, task)->values[0][0], 70);
	assert_int_equal(pmu_of(f, task)->cycles[1], 7);
	assert_int_equal(pmu_of(f, task)->blocks[1], 1);
}

static void counters_of_no_task_are_counted(void **state)
{
	struct fixture *f = *state;

	counters(f, PMU_TASK, 0, 100, 500);
	stars(f, START, 0, 0, 1000);
	stars(f, END, 0, 0, 2000);
	counters(f, PMU_TASK, 0, 100, 3000);
	import(f, NPS_CHIP_910B);
	assert_int_equal(nps_session__log(&f->rec, 0, 0)->stray_counters, 2);
}

/*
 * Numbers mean other things on the 950: 15 is the upkeep of caches there, where others draw random numbers.
 */
static void types_are_of_their_chip(void **state)
{
	static const unsigned int kernels[] = { 0, 1, 2, 4, 5 };

	(void)state;
	for (unsigned int type = 0, k = 0; type < 63; type++) {
		bool kernel = k < NPS_ARRAY_SIZE(kernels) && kernels[k] == type;

		assert_int_equal(nps_is_kernel(nps_sqe_type(NPS_CHIP_950, type)), kernel);
		k += kernel;
	}
	assert_int_equal(nps_sqe_type(NPS_CHIP_950, 15), NPS_SQE_CMO);
	assert_int_equal(nps_sqe_type(NPS_CHIP_950, 17), NPS_SQE_UNLISTED);
	assert_int_equal(nps_sqe_type(NPS_CHIP_950, 63), NPS_SQE_INVALID);
	assert_true(nps_is_kernel(nps_sqe_type(NPS_CHIP_910B, 15)));
	assert_int_equal(nps_sqe_type(NPS_CHIP_910B, 17), NPS_SQE_PCIE_DMA);
}

/* Stream 3's task 7, or TASK, in the log of the cores of an older chip. */
static void hwts(const struct fixture *f, unsigned int end, unsigned int task, uint64_t time)
{
	uint8_t r[64] = { 0 };
	static unsigned int sequence;

	put(r, 0, end | (sequence++ & 15) << 4, 1);
	put(r, 6, task, 2);
	put(r, 8, time, 8);
	put(r, 16, 3, 4);
	append(f, "hwts.data.0.slice_0", r, sizeof(r));
}

enum { TRACK_TASK = 0x0c, TRACK_BLOCKS = 0x0f, STARTED = 1, ENDED = 2 };

/* The scheduler's word of it: a task of TYPE that started or ended, or the number of its blocks. */
static void track(const struct fixture *f, unsigned int tag, unsigned int type, unsigned int status,
		  unsigned int task, uint64_t time)
{
	uint8_t r[40] = { 0 };

	put(r, 1, tag, 1);
	put(r, 2, sizeof(r), 2);
	put(r, 8, time, 8);
	put(r, 16, 3, 2);
	put(r, 18, task, 2);
	put(r, 20, type, 2);
	put(r, 22, status, 1);
	append(f, "ts_track.data.0.slice_0", r, sizeof(r));
}

/* A perfect log in which the scheduler records the cores' tasks too, at the same time and around it. */
static void the_scheduler_logs_a_task_once_more(void **state)
{
	struct fixture *f = *state;
	const struct nps_log_task *task;
	const struct nps_device_log *log;

	for (unsigned int i = 0; i < 100; i++) {
		unsigned int around = i % 2 ? 10 : 0, time = 1000 * (i + 1);

		track(f, TRACK_TASK, 0, STARTED, i, time - around);
		track(f, TRACK_BLOCKS, 5, 0, i, time + 100);
		track(f, TRACK_TASK, 0, ENDED, i, time + 500 + around);
		hwts(f, START, i, time);
		hwts(f, END, i, time + 500);
	}
	task = import(f, NPS_CHIP_910A);
	assert_int_equal(f->tasks.len, 100);
	for (unsigned int i = 0; i < 100; i++) {
		assert_int_equal(task[i].start, 1000 * (i + 1));
		assert_int_equal(task[i].end, 1000 * (i + 1) + 500);
		assert_int_equal(task[i].blocks, 5);
		assert_false(task[i].track);
	}
	log = nps_session__log(&f->rec, 0, 0);
	assert_int_equal(log->incomplete, 0);
	assert_int_equal(log->orphans, 0);
}

static void only_kernels_of_the_scheduler_are_kernels(void **state)
{
	struct fixture *f = *state;
	const struct nps_log_task *task;

	for (unsigned int type = 0; type < 256; type++) {
		track(f, TRACK_TASK, type, STARTED, type, 1000 + 2 * type);
		track(f, TRACK_TASK, type, ENDED, type, 1001 + 2 * type);
	}
	task = import(f, NPS_CHIP_310P);
	assert_int_equal(f->tasks.len, 256);
	for (unsigned int type = 0; type < 256; type++) {
		assert_int_equal(task[type].task, type);
		assert_int_equal(nps_is_kernel(task[type].sqe_type), type < 2 || type == 66);
	}
}

/* Two files record the first task's only run: a damaged directory has counters of two generations. */
static void two_counters_of_a_run_hold_up_no_others(void **state)
{
	struct fixture *f = *state;
	const struct nps_log_task *task;
	uint8_t r[128] = { 0 };

	for (unsigned int i = 0; i < 4; i++) {
		hwts(f, START, i, 1000 * (i + 1));
		hwts(f, END, i, 1000 * (i + 1) + 500);
		put(r, 6, i, 2);
		put(r, 16, 100 + i, 8);
		put(r, 96, 3, 4);
		append(f, "aicore.data.0.slice_0", r, sizeof(r));
	}
	hwts(f, START, 9, 9000);
	hwts(f, END, 9, 9500);
	put(r, 6, 9, 2);
	put(r, 16, 900, 8);
	append(f, "aicore.data.0.slice_0", r, sizeof(r));
	memset(r, 0, sizeof(r));
	put(r, 0, PMU_TASK, 2);
	put(r, 4, 3, 2);
	put(r, 16, 6, 1);
	put(r, 21, 4 << 5, 1);
	put(r, 32, 77, 8);
	put(r, 120, 1200, 8);
	append(f, "ffts_profile.data.0.slice_0", r, sizeof(r));
	task = import(f, NPS_CHIP_910A);
	assert_int_equal(f->tasks.len, 5);
	for (unsigned int i = 1; i < 4; i++)
		assert_int_equal(pmu_of(f, &task[i])->cycles[0], 100 + i);
	assert_int_equal(pmu_of(f, &task[4])->cycles[0], 900);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(blocks_of_other_cores_are_counted),   TEST(counters_of_contexts_add_up),
		TEST(counters_of_no_task_are_counted),	   TEST(two_counters_of_a_run_hold_up_no_others),
		cmocka_unit_test(types_are_of_their_chip), TEST(only_kernels_of_the_scheduler_are_kernels),
		TEST(the_scheduler_logs_a_task_once_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
