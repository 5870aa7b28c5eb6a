/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes of unfinished results (base/unfinished.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unfinished.h"

#define TEMP NPS_UNFINISHED_PREFIX "result@00000000.1.1" NPS_UNFINISHED_SUFFIX

static char dir[] = "/tmp/nps_unfinished_XXXXXX";

static int open_dir(const char *name)
{
	int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static unsigned int notes(void)
{
	DIR *list = opendir("state/npuscope/unfinished");
	const struct dirent *entry;
	unsigned int n = 0;

	assert_non_null(list);
	while ((entry = readdir(list)))
		n += entry->d_name[0] != '.';
	closedir(list);
	return n;
}

/* The same inode, as numbers come again when directories were removed, or on another disk. */
static void one_inode_at_two_paths(void **state)
{
	static const char *const none[] = { NULL };
	struct nps_unfinished first, second;
	int here, there;

	(void)state;
	assert_int_equal(mkdir("here", 0700), 0);
	assert_int_equal(mkdir("here/" TEMP, 0700), 0);
	here = open_dir("here");
	nps_unfinished__begin("input", here, none);
	nps_unfinished__note(&first, here, TEMP);
	assert_int_equal(notes(), 1);
	assert_int_equal(rename("here", "there"), 0);
	there = open_dir("there");
	nps_unfinished__note(&second, there, TEMP);
	assert_int_equal(notes(), 2);
	nps_unfinished__done(&second);
	assert_int_equal(notes(), 1);
	nps_unfinished__done(&first);
	assert_int_equal(notes(), 0);
	close(here);
	close(there);
}

static int enter(void **state)
{
	char path[128];

	(void)state;
	if (!mkdtemp(dir) || chdir(dir) || mkdir("state", 0700))
		return -1;
	snprintf(path, sizeof(path), "%s/state", dir);
	return setenv("XDG_STATE_HOME", path, 1);
}

static int leave(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	return chdir("/") || system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_inode_at_two_paths),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
