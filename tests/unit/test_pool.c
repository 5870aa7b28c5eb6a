/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/util.h"

#define JOBS 200

struct seen {
	size_t next;
	int bad;
};

/* Job 7 fails, job 9 dies; the others hand over their number. */
static int job(void *ctx, size_t i, FILE *out)
{
	(void)ctx;
	if (i == 7)
		return -ENODATA;
	if (i == 9)
		raise(SIGKILL);
	return fwrite(&i, sizeof(i), 1, out) == 1 ? 0 : -EIO;
}

static int done(void *ctx, size_t i, int err, FILE *in)
{
	struct seen *seen = ctx;
	size_t reported = 0;

	seen->bad += i != seen->next++ || !in;
	if (i == 7)
		seen->bad += err != -ENODATA;
	else if (i == 9)
		seen->bad += err != -EIO;
	else
		seen->bad += err || fread(&reported, sizeof(reported), 1, in) != 1 || reported != i;
	return err;
}

static void more_jobs_than_files(void **state)
{
	struct rlimit old, few = { 32, 32 };
	struct seen seen = { 0 };
	int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	(void)state;
	assert_true(dir >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	err = nps_pool__run(JOBS, 4, job, done, &seen, dir);
	setrlimit(RLIMIT_NOFILE, &old);
	close(dir);
	assert_int_equal(err, -ENODATA);
	assert_int_equal(seen.next, JOBS);
	assert_int_equal(seen.bad, 0);
}

#define TALKERS 6

/* The later jobs print first; job 4 is killed when it has printed its line. */
static int talk(void *ctx, size_t i, FILE *out)
{
	(void)ctx, (void)out;
	usleep((TALKERS - i) * 20000);
	nps_msg("job %zu", i);
	if (i == 4)
		raise(SIGKILL);
	return 0;
}

static int reported(void *ctx, size_t i, int err, FILE *in)
{
	(void)ctx, (void)in;
	return i == 4 ? 0 : err;
}

static void lines_come_in_order_of_jobs(void **state)
{
	int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), saved = dup(STDERR_FILENO), err;
	FILE *caught = tmpfile();
	char line[256];

	(void)state;
	assert_true(dir >= 0 && saved >= 0 && caught);
	dup2(fileno(caught), STDERR_FILENO);
	err = nps_pool__run(TALKERS, TALKERS, talk, reported, NULL, dir);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(dir);
	assert_int_equal(err, 0);
	rewind(caught);
	for (size_t i = 0; i < TALKERS; i++) {
		char expected[32];

		snprintf(expected, sizeof(expected), "npuscope: job %zu\n", i);
		assert_non_null(fgets(line, sizeof(line), caught));
		assert_string_equal(line, expected);
		if (i == 4) {
			assert_non_null(fgets(line, sizeof(line), caught));
			assert_non_null(strstr(line, "was killed"));
		}
	}
	assert_null(fgets(line, sizeof(line), caught));
	fclose(caught);
}

static int in_thread(void *ctx, size_t i)
{
	((uint8_t *)ctx)[i]++;
	return i == 5 || i == 90 ? -(int)i : 0;
}

static void threads_do_each_once(void **state)
{
	uint8_t count[100] = { 0 };

	(void)state;
	assert_int_equal(nps_threads__run(sizeof(count), 4, in_thread, count), -5);
	for (size_t i = 0; i < sizeof(count); i++)
		assert_int_equal(count[i], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_jobs_than_files),
		cmocka_unit_test(lines_come_in_order_of_jobs),
		cmocka_unit_test(threads_do_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
