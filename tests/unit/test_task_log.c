/* SPDX-License-Identifier: BSD-2-Clause */
/* The task logs of a session's device, record by record, and what they become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen_session.h"
#include "session/import.h"

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
	struct nps_recording rec;
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
	nps_recording__init(&f->rec, f->dirfd, f->dirfd);
	nps_vec__init(&f->tasks, f->dirfd, sizeof(struct nps_log_task));
	f->json = cJSON_Parse("{\"prof_dir\": \"PROF\"}");
	nps_recording__proc(&f->rec, PID)->json = f->json;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	nps_vec__free(&f->tasks);
	nps_recording__free(&f->rec);
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

/* A record of its counters: of a context, of a mixed kernel's master cores or of one block of the other ones. */
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(blocks_of_other_cores_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
