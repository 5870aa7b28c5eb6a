/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory below /run is the same whatever made it: the switches of the driver, the
 * cost cache, an older version of either.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/cost_cache.h"
#include "core/run_directory.h"
#include "sources/driver/trace_switch.h"

static char top[64], run[96], proc[96], costs[128];

static int set_up(void **state)
{
	(void)state;
	umask(022);
	snprintf(top, sizeof(top), "/tmp/nps_run_XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(run, sizeof(run), "%s/npuscope", top);
	snprintf(proc, sizeof(proc), "%s/proc", top);
	snprintf(costs, sizeof(costs), "%s/costs", run);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	umask(022);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static int open_it(void)
{
	int fd = nps_run_directory__open(AT_FDCWD, run);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void whatever_the_umask_is(void **state)
{
	(void)state;
	umask(077);
	assert_int_equal(open_it(), 0);
	assert_int_equal(mode_of(run), 0755);
	assert_int_equal(rmdir(run), 0);
	umask(0);
	assert_int_equal(open_it(), 0);
	assert_int_equal(mode_of(run), 0755);
	assert_int_equal(open_it(), 0);
}

static void one_that_is_private(void **state)
{
	(void)state;
	assert_int_equal(mkdir(run, 0700), 0);
	assert_int_equal(open_it(), 0);
	assert_int_equal(mode_of(run), 0755);
}

static void what_others_have_a_hand_in(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(mkdir(run, 0700), 0);
	assert_int_equal(chmod(run, 0775), 0);
	assert_int_equal(open_it(), -EPERM);
	assert_int_equal(mode_of(run), 0775);
	assert_int_equal(chmod(run, 01777), 0);
	assert_int_equal(open_it(), -EPERM);
	assert_int_equal(chmod(run, 0700), 0);
	assert_int_equal(rename(run, proc), 0);
	assert_int_equal(symlink(proc, run), 0);
	assert_int_equal(open_it(), -EPERM);
	assert_int_equal(mode_of(proc), 0700);
	assert_int_equal(unlink(run), 0);
	fd = open(run, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(open_it(), -EPERM);
	assert_int_equal(mode_of(run), 0600);
}

static void of_another_user(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(mkdir(run, 0755), 0);
	assert_int_equal(chown(run, 65534, 65534), 0);
	assert_int_equal(open_it(), -EPERM);
}

/* The driver has no switch here: the list is not even made, but the directory is. */
static void the_switches_come_first(void **state)
{
	static const char *const path[] = { "npuscope", NULL };
	const struct nps_cost_cache cache = { .top = top, .path = path, .owner = geteuid() };
	const struct nps_trace_paths paths = { proc, run };
	const struct nps_cost_key key = { "npuscope costs 1\nboot a\n" };
	const struct nps_cost cost = { .call_ns = { 3, 2, 1 }, .mark_ns = { 3, 2, 1 } };
	struct nps_trace_switch *none;
	char lock[128];

	(void)state;
	umask(077);
	assert_int_equal(nps_trace_switch__on(&paths, 1U << NPS_TRACE_CHAN, &none), -ENOENT);
	assert_int_equal(mode_of(run), 0755);
	snprintf(lock, sizeof(lock), "%s/trace.lock", run);
	assert_int_equal(mode_of(lock), 0600);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	assert_int_equal(mode_of(run), 0755);
	assert_int_equal(mode_of(costs), 0644);
}

/* Of a capture of a version that made it for itself alone. */
static void costs_come_to_what_is_hidden(void **state)
{
	static const char *const path[] = { "npuscope", NULL };
	const struct nps_cost_cache cache = { .top = top, .path = path, .owner = geteuid() };
	const struct nps_cost_key key = { "npuscope costs 1\nboot a\n" };
	const struct nps_cost cost = { .call_ns = { 3, 2, 1 }, .mark_ns = { 3, 2, 1 } };

	(void)state;
	assert_int_equal(mkdir(run, 0700), 0);
	assert_int_equal(nps_cost_cache__write(&cache, &key, &cost), 0);
	assert_int_equal(mode_of(run), 0755);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whatever_the_umask_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_private, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_others_have_a_hand_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_another_user, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_switches_come_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(costs_come_to_what_is_hidden, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
