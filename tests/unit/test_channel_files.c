/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of a process's channels: what a process that names every channel of
 * every device costs, and what it does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/channel_files.h"

static const struct {
	uint32_t channel, record;
	const char *file;
} kinds[] = { { 43, 128, "aicore.data" },	{ 44, 40, "ts_track.data" },
	      { 45, 64, "hwts.data" },		{ 48, 64, "hwts.aiv_data" },
	      { 50, 64, "stars_soc.data" },	{ 51, 32, "stars_block.data" },
	      { 53, 128, "ffts_profile.data" }, { 85, 128, "aiVectorCore.data" },
	      { 143, 256, "aicpu.data" } };
#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

static char dir[64];
static struct nps_session_writer session;
static struct nps_log_budget budget;
static struct nps_channel_files *files;

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/nps_unit_XXXXXX");
	if (!mkdtemp(dir) || nps_session_writer__create(dir, &session))
		return -1;
	nps_log_budget__init(&budget, &session, 1ULL << 30, NPS_LOG_RATE);
	files = nps_channel_files__new(getpid(), &session, &budget);
	return files ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[96];

	(void)state;
	nps_channel_files__free(files);
	nps_log_budget__free(&budget);
	nps_session_writer__close(&session);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

static size_t descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void put_record(uint32_t device, size_t kind, uint32_t epoch, uint64_t position, int byte)
{
	const struct nps_channel_at at = { .device = device,
					   .channel = kinds[kind].channel,
					   .reader = NPS_READ_BY_AGENT,
					   .epoch = epoch,
					   .position = position };
	char data[256];

	memset(data, byte, sizeof(data));
	assert_int_equal(nps_channel_files__put(files, &at, data, kinds[kind].record), 0);
}

static void every_channel_of_every_device(void **state)
{
	size_t before = descriptors();

	(void)state;
	for (int turn = 0; turn < 3; turn++)
		for (uint32_t device = 0; device < NPS_DEVICE_MAX; device++)
			for (size_t k = 0; k < N_KINDS; k++)
				put_record(device, k, 1, (uint64_t)turn * kinds[k].record, 'a' + turn);
	assert_in_range(descriptors(), before, before + 64);
	nps_channel_files__finish(files);
	for (uint32_t device = 0; device < NPS_DEVICE_MAX; device++)
		for (size_t k = 0; k < N_KINDS; k++) {
			char path[PATH_MAX + 256], data[1024];
			FILE *f;

			snprintf(path, sizeof(path), "%s/%s/device_%u/data/%s.%u.slice_0", session.path,
				 nps_channel_files__dir(files), device, kinds[k].file, device);
			f = fopen(path, "r");
			assert_non_null(f);
			assert_int_equal(fread(data, 1, sizeof(data), f), 3 * kinds[k].record);
			fclose(f);
			for (int turn = 0; turn < 3; turn++)
				assert_int_equal(data[turn * kinds[k].record], 'a' + turn);
			snprintf(path + strlen(path), 8, ".done");
			assert_int_equal(access(path, F_OK), 0);
		}
}

/*
 * A slice that loses its descriptor half full goes on where it was, and
 * is followed by another when it is full.
 */
static void slice_without_descriptor_goes_on(void **state)
{
	const uint32_t half = NPS_PROF_SLICE / 2;
	struct nps_channel_at at = { .device = 0, .channel = 50, .reader = NPS_READ_BY_AGENT, .epoch = 1 };
	static char data[NPS_PROF_SLICE / 2];
	char path[PATH_MAX + 256];
	struct stat st;

	(void)state;
	for (uint32_t turn = 0; turn < 3; turn++, at.position += half) {
		assert_int_equal(nps_channel_files__put(files, &at, data, half), 0);
		for (uint32_t device = 1; device < 10; device++) /* more than are kept open */
			for (size_t k = 0; k < N_KINDS; k++)
				put_record(device, k, 1, (uint64_t)turn * kinds[k].record, 'x');
	}
	nps_channel_files__finish(files);
	snprintf(path, sizeof(path), "%s/%s/device_0/data/stars_soc.data.0.slice_0", session.path,
		 nps_channel_files__dir(files));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, NPS_PROF_SLICE);
	path[strlen(path) - 1] = '1';
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, half);
}

/* Clocks alone make no directory. */
static void clocks_make_no_directory(void **state)
{
	char path[PATH_MAX + 256];

	(void)state;
	put_record(0, 4, 1, 0, 'x');
	for (uint32_t device = 0; device < NPS_DEVICE_MAX; device++) {
		const struct nps_device_clock c = {
			.device = device, .raw_before = 1, .raw_after = 2, .counter = 3
		};

		nps_channel_files__clock(files, &c);
	}
	assert_int_equal(nps_channel_files__devices(files), 1);
	assert_int_equal(nps_channel_files__write_control(files, "job", 2, 1, NULL), 0);
	snprintf(path, sizeof(path), "%s/%s/device_1", session.path, nps_channel_files__dir(files));
	assert_int_equal(access(path, F_OK), -1);
}

static void log_that_breaks_off_all_the_time_ends(void **state)
{
	struct nps_channel_at at = { .device = 0, .channel = 50, .reader = NPS_READ_BY_AGENT };
	const char record[64] = "";
	int err = 0;

	(void)state;
	for (; !err && at.epoch < 100000; at.epoch++)
		err = nps_channel_files__put(files, &at, record, sizeof(record));
	assert_int_equal(err, -ENOBUFS);
	assert_string_equal(nps_channel_files__account(files)->end, "breaks");
	assert_in_range(at.epoch, 65000, 66000);
}

/*
 * A device that is known from its first byte on has its control files then,
 * and those of the others are left alone.
 */
static void control_files_come_with_the_device(void **state)
{
	char path[PATH_MAX + 256];
	struct stat first, second;

	(void)state;
	put_record(3, 4, 1, 0, 'x');
	snprintf(path, sizeof(path), "%s/%s/device_3/info.json.3", session.path,
		 nps_channel_files__dir(files));
	assert_int_equal(stat(path, &first), 0);
	put_record(4, 4, 1, 0, 'x');
	put_record(3, 1, 1, 0, 'x');
	assert_int_equal(stat(path, &second), 0);
	assert_true(first.st_ino == second.st_ino);
	assert_int_equal(nps_channel_files__write_control(files, "job", 2, 1, NULL), 0);
	assert_int_equal(stat(path, &second), 0);
	assert_true(first.st_ino != second.st_ino);
	snprintf(path + strlen(path), 8, ".new");
	assert_int_equal(access(path, F_OK), -1);
}

static uint64_t bytes_below;

static int add_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)ftw;
	if (type == FTW_F)
		bytes_below += (uint64_t)st->st_size;
	return 0;
}

/* As many as are on disk below the session. */
static void assert_all_is_counted(void)
{
	bytes_below = 0;
	assert_int_equal(nftw(session.path, add_file, 16, FTW_PHYS), 0);
	assert_int_equal(nps_session_writer__bytes(&session), bytes_below);
}

/*
 * What --max-size bounds is all that is written: records, breaks, control files and
 * marks, and of one that is replaced the last.
 */
static void every_file_is_counted(void **state)
{
	(void)state;
	assert_all_is_counted();
	for (uint32_t device = 0; device < 3; device++)
		for (size_t k = 0; k < N_KINDS; k++)
			put_record(device, k, 1, 0, 'x');
	put_record(0, 0, 2, 0, 'x');
	assert_all_is_counted();
	assert_int_equal(nps_channel_files__write_control(files, "a longer name than none", 2, 1, NULL), 0);
	assert_int_equal(nps_channel_files__write_control(files, "a longer name than none", 2, 1, NULL), 0);
	nps_channel_files__finish(files);
	assert_all_is_counted();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_channel_of_every_device, setup, teardown),
		cmocka_unit_test_setup_teardown(slice_without_descriptor_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(clocks_make_no_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(log_that_breaks_off_all_the_time_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(control_files_come_with_the_device, setup, teardown),
		cmocka_unit_test_setup_teardown(every_file_is_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
