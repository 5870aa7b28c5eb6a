/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures made by hand: what the host's calls and launches become together with what one device logged. */
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

#define UNIX_US 1736408883000000ULL
#define UNIX (UNIX_US * 1000)
#define RAW 5000000000ULL /* raw ns of the host at UNIX, and when the device was synchronised */
#define COUNT 700000ULL /* of the host and the device then; 100 and 50 MHz */
#define TICK 20 /* ns of the device */
#define STREAM 3
#define TID 1

enum level { ACL = 20000, MODEL = 15000, NODE = 10000, HCCL = 5500, RUNTIME = 5000 };
enum task { AICORE = 0, FUSION = 4, COPY = 5, FFTS = 52, SIMT = 600 };

struct fixture {
	char dir[64];
	int host, device; /* their data directories */
	int tmpfd;
	unsigned int logged; /* records of the device */
	struct nps_model m;
};

static void put_at(int dirfd, const char *name, const void *bytes, size_t len)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static void put_text(int dirfd, const char *name, const char *text)
{
	put_at(dirfd, name, text, strlen(text));
}

static int make_dir(int prof, const char *name, const char *suffix)
{
	char path[64], text[256];
	int fd, data;

	assert_int_equal(mkdirat(prof, name, 0700), 0);
	fd = openat(prof, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(fd, "data", 0700), 0);
	snprintf(path, sizeof(path), "info.json%s", suffix);
	put_text(fd, path,
		 "{\"version\":\"1.0\",\"platform_version\":\"5\",\"pid\":\"77\",\"CPU\":[{\"Frequency\":"
		 "\"100\"}],"
		 "\"DeviceInfo\":[{\"hwts_frequency\":\"50\",\"aic_frequency\":\"1000\"}]}");
	snprintf(path, sizeof(path), "start_info%s", suffix);
	snprintf(text, sizeof(text), "{\"collectionTimeBegin\":\"%llu\",\"clockMonotonicRaw\":\"%llu\"}",
		 UNIX_US, RAW);
	put_text(fd, path, text);
	snprintf(path, sizeof(path), "host_start.log%s", suffix);
	snprintf(text, sizeof(text), "clock_monotonic_raw: %llu\ncntvct: %llu\ncntvct_diff: 0\n", RAW, COUNT);
	put_text(fd, path, text);
	if (*suffix)
		put_text(fd, "dev_start.log.0", "clock_monotonic_raw: 1000\ncntvct: 700000\n");
	data = openat(fd, "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(fd);
	return data;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int prof;

	assert_non_null(f);
	strcpy(f->dir, "/tmp/nps_host_XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	prof = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(prof >= 0 && f->tmpfd >= 0);
	assert_int_equal(nps_model__init(&f->m, f->tmpfd, NULL), 0);
	f->host = make_dir(prof, "host", "");
	f->device = make_dir(prof, "device_0", ".0");
	close(prof);
	put_text(f->host, "unaging.additional.type_info_dic.slice_0",
		 "5000_0:KERNEL_AICORE\n5000_4:KERNEL_FUSION\n5000_5:MEMCPY_ASYNC\n5000_52:FFTS_PLUS\n"
		 "5000_600:KERNEL_SIMT\n5500_65537:master\n");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	nps_model__free(&f->m);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	close(f->host);
	close(f->device);
	close(f->tmpfd);
	free(f);
	return 0;
}

static void import(struct fixture *f)
{
	assert_int_equal(nps_import__cann(&f->m, f->dir), 0);
}

/* --- records; times are counts of the host or the device since the start --- */

static void store(uint8_t *to, uint64_t value, size_t width)
{
	memcpy(to, &value, width); /* the tests run on little-endian machines, as the program does */
}

static void head(uint8_t *record, enum level level, uint32_t type, uint64_t time)
{
	store(record, 0x5a5a, 2);
	store(record + 2, level, 2);
	store(record + 4, type, 4);
	store(record + 8, TID, 4);
	store(record + 16, COUNT + time, 8);
}

static void call(struct fixture *f, enum level level, uint32_t type, uint64_t begin, uint64_t end,
		 uint64_t item)
{
	uint8_t record[40] = { 0 };

	head(record, level, type, begin);
	store(record + 24, COUNT + end, 8);
	store(record + 32, item, 8);
	put_at(f->host, "aging.api_event.data.slice_0", record, sizeof(record));
}

static void launch(struct fixture *f, uint64_t time, uint32_t task, enum task type, uint64_t kernel)
{
	uint8_t record[64] = { 0 };

	head(record, RUNTIME, 802, time);
	store(record + 26, STREAM, 2);
	store(record + 28, task, 4);
	store(record + 32, type, 8);
	store(record + 40, kernel, 8);
	store(record + 48, 1, 2);
	put_at(f->host, "aging.compact.task_track.slice_0", record, sizeof(record));
}

static void copy(struct fixture *f, uint64_t time, uint64_t bytes)
{
	uint8_t record[64] = { 0 };

	head(record, RUNTIME, 801, time);
	store(record + 24, bytes, 8);
	store(record + 40, 1, 2);
	put_at(f->host, "aging.compact.memcpy_info.slice_0", record, sizeof(record));
}

static void part(struct fixture *f, uint64_t time)
{
	uint8_t record[256] = { 0 };

	head(record, HCCL, 10, time);
	store(record + 40, 9, 8);
	store(record + 56, 2, 4);
	store(record + 68, UINT32_MAX, 4);
	put_at(f->host, "aging.additional.hccl_info.slice_0", record, sizeof(record));
}

/* A run of TASK. */
static void run(struct fixture *f, uint32_t task, uint64_t start, uint64_t end)
{
	for (unsigned int i = 0; i < 2; i++) {
		uint8_t record[64] = { 0 };

		store(record, i | (f->logged++ & 15) << 6, 2);
		store(record + 2, 0x6bd3, 2);
		store(record + 4, STREAM, 2);
		store(record + 6, task, 2);
		store(record + 8, COUNT + (i ? end : start), 8);
		put_at(f->device, "stars_soc.data.0.slice_0", record, sizeof(record));
	}
}

/* How much of what WHAT begins with was lost. */
static uint64_t lost(const struct fixture *f, const char *what)
{
	uint64_t count = 0;

	for (size_t i = 0; i < f->m.losses.len; i++) {
		const struct nps_lost *loss = &NPS_AT(&f->m.losses, struct nps_lost, i);

		if (!strncmp(loss->what, what, strlen(what)))
			count += loss->count;
	}
	return count;
}

/* --- collectives of graphs --- */

#define PARTS 3
#define REPLAYS 4
#define REPLAY 100000 /* ticks from one to the next */

/*
 * Executes a graph's collective of PARTS tasks several times, but loses the logs of the first run's parts
 * whose bits are in LOST_FIRST, and those of the second in LOST_SECOND.
 */
static void replay(struct fixture *f, unsigned int lost_first, unsigned int lost_second)
{
	call(f, MODEL, 2, 0, 1000, 9);
	call(f, NODE, 5, 10, 900, 5);
	call(f, HCCL, 65537, 20, 800, 6);
	for (uint32_t k = 0; k < PARTS; k++) {
		launch(f, 30 + 10 * k, k, AICORE, 0);
		part(f, 30 + 10 * k);
	}
	for (uint32_t r = 0; r < REPLAYS; r++)
		for (uint32_t k = 0; k < PARTS; k++)
			if (!((r == 0 ? lost_first : r == 1 ? lost_second : 0) >> k & 1))
				run(f, k, r * REPLAY + 1000 * k, r * REPLAY + 1000 * k + 500);
	import(f);
}

static void assert_replays(const struct fixture *f, unsigned int lost_first, unsigned int lost_second)
{
	const struct nps_comm_op_table *t = &f->m.comm_op;

	assert_int_equal(t->t.len, REPLAYS);
	for (uint32_t r = 0; r < REPLAYS; r++) {
		unsigned int missing = r == 0	? lost_first
				       : r == 1 ? lost_second
						: 0,
			     first = 0, last = PARTS - 1;

		while (missing >> first & 1)
			first++;
		while (missing >> last & 1)
			last--;
		assert_int_equal(t->start[r], UNIX + TICK * (r * REPLAY + 1000 * first));
		assert_int_equal(t->end[r], UNIX + TICK * (r * REPLAY + 1000 * last + 500));
		assert_int_equal(t->measured[r], PARTS - __builtin_popcount(missing));
	}
	for (size_t i = 1; i < f->m.comm_task.t.len; i++)
		assert_true(f->m.comm_task.op[i] - f->m.comm_task.op[i - 1] <= 1);
}

static void replays_are_distinguished(void **state)
{
	replay(*state, 0, 0);
	assert_replays(*state, 0, 0);
}

static void a_lost_end_of_a_replay(void **state)
{
	replay(*state, 4, 0);
	assert_replays(*state, 4, 0);
}

static void a_capture_that_begins_in_a_replay(void **state)
{
	replay(*state, 3, 0);
	assert_replays(*state, 3, 0);
}

static void a_lost_log_between_replays(void **state)
{
	replay(*state, 0, 1);
	assert_replays(*state, 0, 1);
}

/* --- launches --- */

static void copies_of_one_call_may_be_alike(void **state)
{
	struct fixture *f = *state;

	call(f, ACL, 2, 0, 500, 0);
	for (uint32_t i = 0; i < 2; i++) {
		launch(f, 10, i, COPY, 0);
		copy(f, 10, 4096);
		run(f, i, 100 * i, 100 * i + 50);
	}
	/* A record too many is not the size of the next copy. */
	copy(f, 10, 4096);
	launch(f, 20, 2, COPY, 0);
	copy(f, 20, 512);
	run(f, 2, 200, 250);
	import(f);
	assert_int_equal(f->m.memcpy.t.len, 3);
	assert_int_equal(f->m.memcpy.size[0], 4096);
	assert_int_equal(f->m.memcpy.size[1], 4096);
	assert_int_equal(f->m.memcpy.size[2], 512);
	assert_int_equal(lost(f, "records of the host that repeat another one"), 1);
}

static void kernels_need_no_call(void **state)
{
	static const enum task types[] = { AICORE, FUSION, FFTS, SIMT };
	struct fixture *f = *state;

	put_text(f->host, "unaging.additional.hash_dic.slice_0", "100:a\n101:b\n102:c\n103:d\n");
	for (uint32_t i = 0; i < NPS_ARRAY_SIZE(types); i++) {
		launch(f, 10 + i, i, types[i], 100 + i);
		run(f, i, 100 * i, 100 * i + 50);
	}
	import(f);
	assert_int_equal(f->m.task.t.len, 4);
	assert_int_equal(f->m.compute.t.len, 3);
	assert_string_equal(nps_model__text(&f->m, f->m.compute.name[0]), "a");
	assert_string_equal(nps_model__text(&f->m, f->m.compute.core[0]), "AI_CORE");
	assert_string_equal(nps_model__text(&f->m, f->m.compute.name[1]), "b");
	assert_int_equal(f->m.compute.core[1], NPS_NONE);
	assert_string_equal(nps_model__text(&f->m, f->m.compute.name[2]), "d");
	assert_int_equal(f->m.task.class[2], NPS_CLASS_OTHER);
}

static void long_names_stay_whole(void **state)
{
	struct fixture *f = *state;
	char line[3000];

	for (uint32_t i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "%u:%02900u%c\n", 100 + i, 0U, "ab"[i]);
		put_text(f->host, "unaging.additional.hash_dic.slice_0", line);
		launch(f, 10 + i, i, AICORE, 100 + i);
		run(f, i, 100 * i, 100 * i + 50);
	}
	import(f);
	for (uint32_t i = 0; i < 2; i++) {
		const char *name = nps_model__text(&f->m, f->m.compute.name[i]);

		assert_int_equal(strlen(name), 2901);
		assert_int_equal(name[strlen(name) - 1], 'a' + i);
	}
}

/* --- losses --- */

static void levels_without_a_table_are_one_loss(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 100; i++)
		call(f, 100 + i, 1, 10 * i, 10 * i + 5, 0);
	import(f);
	assert_int_equal(f->m.api.t.len, 0);
	assert_int_equal(lost(f, "calls of levels that no table shows"), 100);
}

static void dictionaries_are_read_once(void **state)
{
	struct fixture *f = *state;
	uint8_t record[256] = { 0 };

	put_text(f->host, "unaging.additional.hash_dic.slice_0", "damaged\n20:aclnnAdd\n");
	head(record, NODE, 6, 10);
	store(record + 24, 1, 8);
	store(record + 32, 4096, 8);
	store(record + 40, 20, 8);
	store(record + 48, 1, 8);
	store(record + 56, 1, 8);
	store(record + 68, 20, 4);
	put_at(f->host, "aging.additional.task_memory_info.slice_0", record, sizeof(record));
	run(f, 0, 0, 50);
	import(f);
	assert_int_equal(f->m.npu_op_mem.t.len, 1);
	assert_string_equal(nps_model__text(&f->m, f->m.npu_op_mem.name[0]), "aclnnAdd");
	assert_int_equal(lost(f, "lines of unaging.additional.hash_dic"), 1);
}

/*
 * Counters of 0 are times that were not recorded: such a call or task
 * would last since the machine was booted.
 */
static void begins_of_zero(void **state)
{
	struct fixture *f = *state;

	call(f, ACL, 1, -COUNT, 50, 0);
	call(f, ACL, 1, 10, 40, 0);
	run(f, 0, -COUNT, 60);
	run(f, 1, 20, 60);
	import(f);
	assert_int_equal(f->m.api.t.len, 1);
	assert_int_equal(f->m.task.t.len, 1);
	assert_int_equal(f->m.start, UNIX);
	assert_int_equal(lost(f, "calls without a begin time"), 1);
	assert_int_equal(lost(f, "records of stars_soc.data.0 at impossible times"), 1);
}

static void kinds_of_losses_are_bounded(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 600; i++)
		nps_model__lost(&f->m, 2, "%u", i % 300);
	assert_int_equal(f->m.losses.len, 257);
	assert_int_equal(lost(f, "299"), 0);
	assert_int_equal(lost(f, "further kinds of losses"), 2 * 2 * (300 - 256));
	assert_int_equal(NPS_AT(&f->m.losses, struct nps_lost, 255).count, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(replays_are_distinguished),
		TEST(a_lost_end_of_a_replay),
		TEST(a_capture_that_begins_in_a_replay),
		TEST(a_lost_log_between_replays),
		TEST(copies_of_one_call_may_be_alike),
		TEST(kernels_need_no_call),
		TEST(long_names_stay_whole),
		TEST(levels_without_a_table_are_one_loss),
		TEST(dictionaries_are_read_once),
		TEST(begins_of_zero),
		TEST(kinds_of_losses_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
