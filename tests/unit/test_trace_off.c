/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracepoints' switches at the end of a capture, with a driver that takes the call and does not come back. */
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

#include "trace_off.h"

static char top[64], proc[96], lists[96], path[160], list[160];
static const struct nps_trace_places places = { proc, lists };

static void make_switch(void)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("0\n", f);
	fclose(f);
}

static int set_up(void **s)
{
	static const char *const folders[] = { "", "/trs_chan", "/trs_chan/dev0-ts0" };

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
	make_switch();
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

static void a_driver_that_answers_is_waited_for(void **s)
{
	struct nps_trace_switch *sw;
	char text[4] = "";
	FILE *f;

	(void)s;
	assert_true(nps_trace_off(NULL, NULL, NULL));
	assert_int_equal(nps_trace_switch__on(&places, 1U << NPS_TRACE_CHAN, &sw), 0);
	assert_true(nps_trace_off(sw, NULL, NULL));
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "0\n");
	assert_int_equal(access(list, F_OK), -1);
}

static void one_that_does_not_is_left_to_itself(void **s)
{
	struct nps_trace_switch *sw;
	struct pollfd written = { .events = POLLIN };
	unsigned int turns = 0;
	double begin;

	(void)s;
	assert_int_equal(nps_trace_switch__on(&places, 1U << NPS_TRACE_CHAN, &sw), 0);
	/* Nobody reads from it: to open it for writing takes until somebody does. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	begin = now();
	assert_false(nps_trace_off(sw, count, &turns));
	assert_true(now() - begin > 1.9 && now() - begin < 4);
	assert_true(turns > 20);
	assert_int_equal(access(list, F_OK), 0); /* for the next one */
	written.fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(written.fd >= 0);
	assert_int_equal(poll(&written, 1, 5000), 1); /* it comes back after all */
	for (begin = now(); !access(list, F_OK) && now() - begin < 5;)
		usleep(1000);
	assert_int_equal(access(list, F_OK), -1);
	close(written.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_driver_that_answers_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_does_not_is_left_to_itself, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
