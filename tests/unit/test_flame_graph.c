/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded lines and pictures of known stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/flame_graph.h"

static char folder[64];
static int folder_fd = -1;

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_flame.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder_fd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlinkat(folder_fd, "x", 0);
	close(folder_fd);
	return rmdir(folder);
}

/* What the file x holds, then it is deleted; free it. */
static char *read_file(void)
{
	char *text = calloc(1, 1 << 20);
	int fd = openat(folder_fd, "x", O_RDONLY | O_CLOEXEC);

	assert_non_null(text);
	assert_true(fd >= 0);
	assert_true(read(fd, text, (1 << 20) - 1) > 0);
	close(fd);
	unlinkat(folder_fd, "x", 0);
	return text;
}

static void make(struct nps_flame *f)
{
	assert_int_equal(nps_flame__init(f, folder_fd), 0);
	assert_int_equal(nps_flame__add(f, "t", "main;b", 3), 0);
	assert_int_equal(nps_flame__add(f, "t", "main;a;c", 2), 0);
	assert_int_equal(nps_flame__add(f, "t", "main", 5), 0);
	assert_int_equal(nps_flame__add(f, "t", "main;b", 4), 0);
	assert_int_equal(nps_flame__add(f, "a;\"<&>'\x01", "f<int&>", 1), 0);
	assert_int_equal(nps_flame__add(f, "", "", 1), 0);
	assert_int_equal(nps_flame__finish(f), 0);
}

static void lines(void **state)
{
	struct nps_flame f;
	char *text;

	(void)state;
	make(&f);
	assert_int_equal(nps_flame__node(&f, 0)->total, 16);
	assert_int_equal(nps_flame__write_folded(&f, folder_fd, "x", 1), 0);
	text = read_file();
	assert_string_equal(text, "t;main 5\nt;main;b 7\nt;main;a;c 2\na:\"<&>' ;f<int&> 1\n[no name] 1\n");
	free(text);
	/* in a larger unit: rounded, and nothing of what rounds to nothing */
	assert_int_equal(nps_flame__write_folded(&f, folder_fd, "x", 5), 0);
	text = read_file();
	assert_string_equal(text, "t;main 1\nt;main;b 1\n");
	free(text);
	nps_flame__free(&f);
}

static void has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("no %s in %s", what, text);
}

static void picture(void **state)
{
	const struct nps_flame_labels labels = { "<title> & more", "samples", 1 };
	struct nps_flame f;
	char *text;

	(void)state;
	make(&f);
	assert_int_equal(nps_flame__write_svg(&f, folder_fd, "x", &labels), 0);
	text = read_file();
	has(text, "&lt;title&gt; &amp; more");
	has(text, "data-n=\"all\" data-x=\"0\" data-w=\"16\" data-d=\"0\"");
	has(text, "data-n=\"a:&quot;&lt;&amp;&gt;&#39; \"");
	has(text, "data-n=\"f&lt;int&amp;&gt;\"");
	/* [no name], a:.., t in this order; within main a, b */
	has(text, "data-n=\"t\" data-x=\"2\" data-w=\"14\" data-d=\"1\"");
	has(text, "data-n=\"a\" data-x=\"2\" data-w=\"2\" data-d=\"3\"");
	has(text, "data-n=\"b\" data-x=\"4\" data-w=\"7\" data-d=\"3\"");
	has(text, "<rect x=\"300.0000\"");
	assert_null(strchr(text, 1));
	free(text);
	nps_flame__free(&f);
}

static void picture_of_nothing(void **state)
{
	const struct nps_flame_labels labels = { "t", "samples", 1 };
	struct nps_flame f;
	char *text;

	(void)state;
	assert_int_equal(nps_flame__init(&f, folder_fd), 0);
	assert_int_equal(nps_flame__finish(&f), 0);
	assert_int_equal(nps_flame__write_svg(&f, folder_fd, "x", &labels), 0);
	text = read_file();
	has(text, "nothing of this was seen");
	assert_null(strstr(text, "<g class"));
	assert_null(strstr(text, "<script"));
	has(text, "</svg>\n");
	free(text);
	nps_flame__free(&f);
}

static void many_frames_stay_viewable(void **state)
{
	const struct nps_flame_labels labels = { "t", "samples", 1 };
	struct nps_flame f;
	char name[32];
	size_t n = 0;
	char *text;

	(void)state;
	assert_int_equal(nps_flame__init(&f, folder_fd), 0);
	for (int i = 0; i < 70000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(nps_flame__add(&f, "t", name, i == 9 ? 1000000 : 1), 0);
	}
	assert_int_equal(nps_flame__finish(&f), 0);
	assert_int_equal(nps_flame__write_svg(&f, folder_fd, "x", &labels), 0);
	text = read_file();
	for (const char *at = text; (at = strstr(at, "<g class")); at++)
		n++;
	assert_int_equal(n, 3);
	has(text, "69999 frames below");
	free(text);
	nps_flame__free(&f);
}

static void deep_and_heavy(void **state)
{
	char *deep = malloc(4001);
	struct nps_flame f;

	(void)state;
	assert_non_null(deep);
	for (int i = 0; i < 4000; i++)
		deep[i] = i % 2 ? ';' : 'f';
	deep[4000] = '\0';
	assert_int_equal(nps_flame__init(&f, folder_fd), 0);
	assert_int_equal(nps_flame__add(&f, "t", deep, UINT64_MAX), 0);
	assert_int_equal(nps_flame__add(&f, "t", "f;g", UINT64_MAX), 0);
	assert_int_equal(nps_flame__finish(&f), 0);
	assert_int_equal(nps_flame__node(&f, 0)->total, UINT64_MAX);
	assert_int_equal(nps_flame__write_folded(&f, folder_fd, "x", 1000), 0);
	free(read_file());
	nps_flame__free(&f);
	free(deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(picture),
		cmocka_unit_test(picture_of_nothing),
		cmocka_unit_test(many_frames_stay_viewable),
		cmocka_unit_test(deep_and_heavy),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
