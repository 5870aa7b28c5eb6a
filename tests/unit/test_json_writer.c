/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen_session.h"
#include "base/json_writer.h"
#include "base/util.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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

static void integers_of_every_length(void **state)
{
	char want[64], *out;
	uint64_t power = 1;

	(void)state;
	for (int i = 0; i < 20; i++, power *= 10) {
		nps_writer__u64(&w, power - 1);
		nps_writer__lit(&w, " ");
		nps_writer__u64(&w, power);
		nps_writer__lit(&w, "\n");
	}
	nps_writer__i64(&w, INT64_MIN);
	out = strdup(written());
	power = 1;
	for (char *line = out; power <= 1000000000000000000U; power *= 10, line = strchr(line, '\n') + 1) {
		snprintf(want, sizeof(want), "%" PRIu64 " %" PRIu64 "\n", power - 1, power);
		assert_memory_equal(line, want, strlen(want));
	}
	assert_non_null(strstr(out, "\n-9223372036854775808"));
	free(out);
}

static void times_keep_their_second(void **state)
{
	(void)state;
	nps_writer__time(&w, 1736408883704643212ULL);
	nps_writer__lit(&w, " ");
	nps_writer__time(&w, 1736408883000000001ULL);
	nps_writer__lit(&w, " ");
	nps_writer__time(&w, 2000000000ULL);
	nps_writer__lit(&w, " ");
	nps_writer__time(&w, 999999999ULL);
	nps_writer__lit(&w, " ");
	nps_writer__time(&w, UINT64_MAX);
	assert_string_equal(written(), "1736408883704643.212 1736408883000000.001 2000000.000 999999.999 "
				       "18446744073709551.615");
}

static void numbers_are_short(void **state)
{
	static const double numbers[] = { 0,	 1800,	      21.1825022116, -0.5, 1e-9,
					  -1e-9, 0.999999501, 1e15,	     NAN,  INFINITY };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		nps_writer__number(&w, numbers[i]);
		nps_writer__lit(&w, " ");
	}
	nps_writer__fixed(&w, 2);
	assert_string_equal(written(),
			    "0.0 1800.0 21.182502 -0.5 0.0 0.0 1.0 1000000000000000 null null 2.000000");
}

static void compressed_bytes_are_reproducible(void **state)
{
	char name[2] = "a", bytes[2][4096];
	ssize_t len[2];

	(void)state;
	for (int i = 0; i < 2; i++, name[0]++) {
		struct nps_writer zip;
		int fd;

		assert_int_equal(nps_writer__open_gzip(&zip, dirfd_, name), 0);
		for (int k = 0; k < 200000; k++)
			nps_writer__lit(&zip, "the same\n");
		assert_int_equal(nps_writer__written(&zip), 1800000);
		assert_int_equal(nps_writer__close(&zip), 0);
		fd = openat(dirfd_, name, O_RDONLY | O_CLOEXEC);
		len[i] = read(fd, bytes[i], sizeof(bytes[i]));
		close(fd);
	}
	assert_true(len[0] > 20 && len[0] == len[1]);
	assert_memory_equal(bytes[0], bytes[1], NPS_MIN(len[0], (ssize_t)sizeof(bytes[0])));
	assert_memory_equal(bytes[0], "\x1f\x8b\x08\0\0\0\0\0", 8); /* no name, no time */
	written();
}

/* Pieces that cross the end of the buffer, at every offset. */
static void long_files_have_no_seams(void **state)
{
	static const char line[] =
		"{\"name\":\"a\\\"b\",\"n\":12345678901,\"ts\":1736408883704643.212,\"v\":1.5}\n";
	const int n = 20000;
	char *all = malloc((sizeof(line) - 1) * n);
	int fd;

	(void)state;
	for (int i = 0; i < n; i++) {
		nps_writer__lit(&w, "{\"name\":");
		nps_writer__json(&w, "a\"b");
		nps_writer__lit(&w, ",\"n\":");
		nps_writer__u64(&w, 12345678901);
		nps_writer__lit(&w, ",\"ts\":");
		nps_writer__time(&w, 1736408883704643212ULL);
		nps_writer__lit(&w, ",\"v\":");
		nps_writer__number(&w, 1.5);
		nps_writer__lit(&w, "}\n");
	}
	assert_int_equal(nps_writer__close(&w), 0);
	fd = openat(dirfd_, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, all, (sizeof(line) - 1) * n), (sizeof(line) - 1) * n);
	close(fd);
	for (int i = 0; i < n; i++)
		assert_memory_equal(all + i * (sizeof(line) - 1), line, sizeof(line) - 1);
	free(all);
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
		cmocka_unit_test_setup_teardown(integers_of_every_length, setup, teardown),
		cmocka_unit_test_setup_teardown(times_keep_their_second, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_are_short, setup, teardown),
		cmocka_unit_test_setup_teardown(compressed_bytes_are_reproducible, setup, teardown),
		cmocka_unit_test_setup_teardown(long_files_have_no_seams, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_hostile_is_escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(items_are_separated, setup, teardown),
		cmocka_unit_test_setup_teardown(files_are_new_and_private, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_is_an_error_at_close, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
