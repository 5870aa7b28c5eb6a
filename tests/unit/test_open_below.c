/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths below a root, component by component, against what openat2(2) makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/open_below.h"

static char dir[] = "/tmp/open_below.XXXXXX";
static int root;

static int kernels(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* Both lead to one file, or fail alike. */
static void expect_same(const char *path)
{
	int walked = nps_open_below__walk(root, path), opened = kernels(path);
	struct stat a, b;

	if (opened < 0 || walked < 0) {
		if (walked != opened)
			fail_msg("%.200s: %d, openat2 %d", path, walked, opened);
	} else {
		assert_int_equal(fstat(walked, &a) | fstat(opened, &b), 0);
		if (a.st_ino != b.st_ino || a.st_dev != b.st_dev)
			fail_msg("%.200s: another file", path);
		assert_int_equal(fcntl(walked, F_GETFL) & O_PATH, O_PATH);
	}
	if (walked >= 0)
		close(walked);
	if (opened >= 0)
		close(opened);
}

static void make_file(const char *name)
{
	int fd = openat(root, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static int setup(void **state)
{
	static const char *const links[][2] = {
		{ "lib/libx.so", "libx.so.1" },
		{ "lib/latest", "/lib/9" },
		{ "lib/up", "../../../../lib" },
		{ "lib/9/back", "../libx.so" },
		{ "lib/loop", "loop" },
		{ "lib/host", "/etc/passwd" },
		{ "lib/ping", "pong" },
		{ "lib/pong", "ping" },
		{ "top", "/" },
		{ "lib/far", "../../../etc/hostname" },
		{ "lib/file_as_dir", "libx.so.1/" },
		{ "lib/dot", "." },
		{ "lib/none", "nothing/there" },
	};

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || mkdirat(root, "lib", 0700) || mkdirat(root, "lib/9", 0700) ||
	    mkdirat(root, "etc", 0700) || mkfifoat(root, "lib/fifo", 0600))
		return -1;
	make_file("lib/libx.so.1");
	make_file("lib/9/libx.so.1");
	make_file("etc/hostname");
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (symlinkat(links[i][1], root, links[i][0]))
			return -1;
	return 0;
}

static int teardown(void **state)
{
	char command[PATH_MAX];

	(void)state;
	close(root);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static bool has_openat2(void)
{
	int fd = kernels("lib");

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void paths_lead_where_the_kernel_leads(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		".",
		"..",
		"../..",
		"//",
		"lib",
		"/lib/",
		"lib//9/",
		"lib/libx.so",
		"/lib/libx.so",
		"lib/latest/libx.so.1",
		"lib/latest/back",
		"lib/up/libx.so",
		"lib/up/../etc/hostname",
		"lib/loop",
		"lib/ping",
		"lib/host",
		"top/lib/libx.so",
		"top/../top/./top/lib/9",
		"lib/far",
		"lib/fifo",
		"lib/fifo/",
		"lib/libx.so.1/",
		"lib/libx.so/",
		"lib/libx.so.1/..",
		"lib/libx.so/.",
		"lib/file_as_dir",
		"lib/dot/dot/dot/libx.so",
		"lib/none",
		"nothing",
		"lib/../../../../lib/9",
		"lib/9/../libx.so",
		"lib/latest/../libx.so",
	};

	(void)state;
	if (!has_openat2())
		skip();
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		expect_same(paths[i]);
}

/* Any path made of these. */
static void paths_at_random(void **state)
{
	static const char *const parts[] = { "lib", "9",    "latest", "up",   "dot",	 "top",
					     "..",  ".",    "",	      "back", "far",	 "libx.so",
					     "etc", "loop", "fifo",   "host", "hostname" };
	unsigned int seed = 1;
	char path[PATH_MAX];

	(void)state;
	if (!has_openat2())
		skip();
	for (int i = 0; i < 20000; i++) {
		size_t n = 0;

		for (int part = rand_r(&seed) % 8; part >= 0; part--)
			n += (size_t)snprintf(path + n, sizeof(path) - n, "%s%s",
					      parts[(size_t)rand_r(&seed) % (sizeof(parts) / sizeof(*parts))],
					      part || !(rand_r(&seed) % 4) ? "/" : "");
		expect_same(path);
	}
}

static void too_long_and_too_deep(void **state)
{
	static char path[2 * PATH_MAX];

	(void)state;
	memset(path, 'a', NAME_MAX + 1);
	assert_int_equal(nps_open_below__walk(root, path), -ENAMETOOLONG);
	memset(path, '/', PATH_MAX);
	assert_int_equal(nps_open_below__walk(root, path), -ENAMETOOLONG);
	/* Directories deeper than any installation's are not entered, and their handles not kept. */
	path[0] = '\0';
	for (int i = 0; i < 80; i++) {
		strcat(path, "d/");
		assert_int_equal(mkdirat(root, path, 0700), 0);
	}
	assert_int_equal(nps_open_below__walk(root, path), -ENAMETOOLONG);
}

/* What cannot be opened leaves no handle behind. */
static void no_handle_is_left(void **state)
{
	int before = dup(root), after;

	(void)state;
	close(before);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(nps_open_below__walk(root, "lib/latest/../none"), -ENOENT);
		assert_int_equal(nps_open_below__walk(root, "lib/dot/loop"), -ELOOP);
		assert_int_equal(nps_open_below__walk(root, "lib/9/back/x"), -ENOTDIR);
	}
	after = dup(root);
	close(after);
	assert_int_equal(after, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_lead_where_the_kernel_leads),
		cmocka_unit_test(paths_at_random),
		cmocka_unit_test(too_long_and_too_deep),
		cmocka_unit_test(no_handle_is_left),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
