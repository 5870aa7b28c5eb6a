/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen_session.h"
#include "json_writer.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct nps_writer w;
static int dirfd_;
static char *dir;

static int setup(void **state)
{
	(void)state;
	dir = gen_temp_dir();
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return nps_writer__open(&w, dirfd_, "file");
}

static int teardown(void **state)
{
	(void)state;
	close(dirfd_);
	gen_remove(dir);
	return 0;
}

/* Closes the writer and returns what it wrote. */
static const char *written(void)
{
	static char text[4096];
	int fd = openat(dirfd_, "file", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_int_equal(nps_writer__close(&w), 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = 0;
	close(fd);
	return text;
}

static void microseconds_are_exact(void **state)
{
	(void)state;
	nps_writer__us(&w, 1736408883704643212ULL);
	nps_writer__lit(&w, " ");
	nps_writer__us(&w, 7);
	nps_writer__lit(&w, " ");
	nps_writer__us(&w, 0);
	nps_writer__lit(&w, " ");
	nps_writer__us(&w, UINT64_MAX);
	assert_string_equal(written(), "1736408883704643.212 0.007 0.000 18446744073709551.615");
}

static void everything_hostile_is_escaped(void **state)
{
	char hostile[300] = "";
	cJSON *json;

	(void)state;
	for (int i = 1; i < 256; i++)
		hostile[i - 1] = i;
	strcat(hostile, "{\xe4\xb8\xad} \xf0\x9f\x98\x80 \xed\xa0\x80 \xc0\xaf \xe4\xb8");
	nps_writer__json(&w, hostile);
	json = cJSON_Parse(written());
	assert_true(cJSON_IsString(json));
	assert_non_null(
		strstr(json->valuestring,
		       "{\xe4\xb8\xad} \xf0\x9f\x98\x80 \xef\xbf\xbd")); /* surrogate, overlong, cut */
	assert_int_equal(json->valuestring[0], 1);
	assert_non_null(strchr(json->valuestring, '\\'));
	cJSON_Delete(json);
}

static void csv_cells_stay_cells(void **state)
{
	(void)state;
	nps_writer__csv(&w, "plain");
	nps_writer__lit(&w, ",");
	nps_writer__csv(&w, "a,b\"c\nd");
	assert_string_equal(written(), "plain,\"a,b\"\"c d\"");
}

static void items_are_separated(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		nps_writer__item(&w);
		nps_writer__u64(&w, i);
	}
	assert_string_equal(written(), "0,\n1,\n2");
}

static void files_are_new_and_private(void **state)
{
	struct nps_writer second;
	struct stat st;

	(void)state;
	assert_int_equal(fstatat(dirfd_, "file", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(nps_writer__open(&second, dirfd_, "file"), -EEXIST);
	assert_int_equal(symlinkat("/nonexistent", dirfd_, "link"), 0);
	assert_int_equal(nps_writer__open(&second, dirfd_, "link"), -EEXIST);
	written();
}

static void a_full_disk_is_an_error_at_close(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), own = w.fd;

	(void)state;
	if (full < 0)
		skip();
	w.fd = full;
	for (int i = 0; i < 100000; i++)
		nps_writer__u64(&w, UINT64_MAX);
	close(own);
	assert_int_equal(nps_writer__close(&w), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(microseconds_are_exact, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_hostile_is_escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(csv_cells_stay_cells, setup, teardown),
		cmocka_unit_test_setup_teardown(items_are_separated, setup, teardown),
		cmocka_unit_test_setup_teardown(files_are_new_and_private, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_is_an_error_at_close, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
