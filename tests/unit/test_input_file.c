/* SPDX-License-Identifier: BSD-2-Clause */
/* What cannot be read is counted for each input, and named once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int folder = -1;

/* What FN writes to stderr. */
static char *printed(void (*fn)(void))
{
	static char text[65536];
	int old = dup(2), fd = openat(folder, "stderr", O_RDWR | O_CREAT | O_TRUNC, 0600);
	ssize_t len;

	assert_true(old >= 0 && fd >= 0);
	dup2(fd, 2);
	fn();
	fflush(stderr);
	dup2(old, 2);
	len = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(len >= 0);
	text[len] = 0;
	close(fd);
	close(old);
	return text;
}

static void read_links(void)
{
	assert_int_equal(nps_input_file__open(folder, "nothing", NULL), -ENOENT);
	assert_int_equal(nps_input_file__open(folder, "link", NULL), -ENOENT);
	assert_int_equal(nps_input_file__open(folder, "link", NULL), -ENOENT);
	assert_int_equal(nps_input_file__open(folder, "loop", NULL), -ELOOP);
}

static void read_many(void)
{
	for (int i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "link%d", i);
		assert_int_equal(nps_input_file__open(folder, name, NULL), -ENOENT);
	}
}

static size_t lines_with(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		n++;
	return n;
}

static void counted_for_each_input(void **state)
{
	const char *text;

	(void)state;
	assert_int_equal(symlinkat("nowhere", folder, "link"), 0);
	assert_int_equal(symlinkat("loop", folder, "loop"), 0);
	/* While inputs are looked for. */
	text = printed(read_links);
	assert_int_equal(lines_with(text, "/link:"), 1);
	assert_int_equal(lines_with(text, "/loop:"), 1);
	assert_int_equal(lines_with(text, "\n"), 2);
	assert_int_equal(nps_input__drain_unreadable(), 2);
	assert_int_equal(nps_input__drain_unreadable(), 0);
	for (int input = 0; input < 3; input++) {
		nps_input__begin();
		assert_string_equal(printed(read_links), "");
		assert_int_equal(nps_input__drain_unreadable(), 2);
		assert_string_equal(printed(read_links), "");
		assert_int_equal(nps_input__drain_unreadable(), 0);
	}
}

/* So many are named of each input; that there are more is reported. */
static void named_for_each_input(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "link%d", i);
		assert_int_equal(symlinkat("nowhere", folder, name), 0);
	}
	for (int input = 0; input < 2; input++) {
		const char *text;

		nps_input__begin();
		text = printed(read_many);
		assert_int_equal(lines_with(text, "\n"),
				 63); /* two were named while inputs were looked for */
		assert_int_equal(lines_with(text, "others that are not named"), 1);
		assert_int_equal(nps_input__drain_unreadable(), 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted_for_each_input),
		cmocka_unit_test(named_for_each_input),
	};
	char path[] = "/tmp/nps_input_XXXXXX", command[64];
	int failed;

	if (!mkdtemp(path))
		return 1;
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	close(folder);
	snprintf(command, sizeof(command), "rm -rf %s", path);
	return system(command) || failed;
}
