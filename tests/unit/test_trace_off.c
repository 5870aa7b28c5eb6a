/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tracepoints' switches at the end of a capture, with a driver that
 * takes the call and does not come back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sources/driver/trace_off.h"

static char top[64], proc[96], lists[96], path[160], other[160], list[160];
static const struct nps_trace_paths paths = { proc, lists };

static void make_switch(const char *at)
{
	FILE *f = fopen(at, "w");

	assert_non_null(f);
	fputs("0\n", f);
	fclose(f);
}

static int set_up(void **s)
{
	static const char *const folders[] = { "", "/trs_chan", "/trs_chan/dev0-ts0", "/trs_chan/dev1-ts0" };

	(void)s;
	snprintf(top, sizeof(top), "/tmp/nps_off_XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(proc, sizeof(proc), "%s/proc", top);
	snprintf(lists, sizeof(lists), "%s/run", top);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, sizeof(path), "%s%s", proc, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	snprintf(path, sizeof(path), "%s/trs_chan/dev0-ts0/trace_enable", proc);
	snprintf(list, sizeof(list), "%s/trace_enable.%d", lists, (int)getpid());
	snprintf(other, sizeof(other), "%s/trs_chan/dev1-ts0/trace_enable", proc);
	make_switch(path);
	make_switch(other);
	return 0;
}

static int tear_down(void **s)
{
	char command[128];

	(void)s;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void count(void *n)
{
	++*(unsigned int *)n;
}

static void assert_off(const char *at)
{
	char text[4] = "";
	FILE *f = fopen(at, "r");

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "0\n");
}

/* Nobody reads from it: to open it for writing takes until somebody does. */
static void make_sick(const char *at)
{
	assert_int_equal(unlink(at), 0);
	assert_int_equal(mkfifo(at, 0600), 0);
}

/* It comes back after all. */
static void wait_until_written(const char *at)
{
	struct pollfd written = { .events = POLLIN };

	written.fd = open(at, O_RDWR | O_CLOEXEC);
	assert_true(written.fd >= 0);
	assert_int_equal(poll(&written, 1, 5000), 1);
	close(written.fd);
}

static void assert_goes(const char *at)
{
	for (double begin = now(); !access(at, F_OK) && now() - begin < 5;)
		usleep(1000);
	assert_int_equal(access(at, F_OK), -1);
}

static void a_driver_that_answers_is_waited_for(void **s)
{
	struct nps_trace_switch *sw;

	(void)s;
	assert_true(nps_trace_off(NULL, NULL, NULL));
	assert_int_equal(nps_trace_switch__on(&paths, 1U << NPS_TRACE_CHAN, &sw), 0);
	assert_true(nps_trace_off(sw, NULL, NULL));
	assert_off(path);
	assert_int_equal(access(list, F_OK), -1);
}

static void one_that_does_not_is_left_to_itself(void **s)
{
	struct nps_trace_switch *sw;
	unsigned int turns = 0;
	double begin;

	(void)s;
	assert_int_equal(nps_trace_switch__on(&paths, 1U << NPS_TRACE_CHAN, &sw), 0);
	make_sick(path);
	begin = now();
	assert_false(nps_trace_off(sw, count, &turns));
	assert_true(now() - begin > 1.9 && now() - begin < 4);
	assert_true(turns > 20);
	assert_int_equal(access(list, F_OK), 0); /* for the next one */
	assert_off(other); /* the device beside it */
	wait_until_written(path);
	assert_goes(list);
}

/* As a process that was killed does. */
static void leave_list(const char *at)
{
	FILE *f = fopen(at, "w");

	assert_non_null(f);
	fprintf(f, "%d dev7-ts0\n", NPS_TRACE_CHAN);
	fclose(f);
}

/* What another one left on, of a device that has fallen sick since. */
static void what_was_left_on_keeps_nobody(void **s)
{
	char dead[160];
	struct nps_trace_switch *sw;
	double begin;

	(void)s;
	assert_int_equal(nps_trace_switch__on(&paths, 1U << NPS_TRACE_CHAN, &sw), 0);
	snprintf(dead, sizeof(dead), "%s/trace_enable.1", lists);
	leave_list(dead);
	snprintf(path, sizeof(path), "%s/trs_chan/dev7-ts0", proc);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/trs_chan/dev7-ts0/trace_enable", proc);
	make_switch(path);
	make_sick(path);
	begin = now();
	assert_false(nps_trace_off(sw, NULL, NULL));
	assert_true(now() - begin > 1.9 && now() - begin < 4);
	assert_off(other); /* its own first */
	assert_int_equal(access(list, F_OK), -1);
	wait_until_written(path);
	assert_goes(dead);
	leave_list(dead);
	begin = now();
	assert_false(nps_trace_restore(&paths));
	assert_true(now() - begin > 1.9 && now() - begin < 4);
	wait_until_written(path);
	assert_goes(dead);
	assert_true(nps_trace_restore(&paths));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_driver_that_answers_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_does_not_is_left_to_itself, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_left_on_keeps_nobody, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
