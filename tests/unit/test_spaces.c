/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file an address belonged to: mappings over time, births, executions, other builds of a file. */
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

#include "stack/spaces.h"

static int tmp_fd = -1;

static int set_up(void **state)
{
	(void)state;
	tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tmp_fd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	return close(tmp_fd);
}

static void map(struct nps_spaces *s, uint32_t pid, uint64_t time, uint64_t start, const char *path)
{
	const struct nps_map_record r = { .what = NPS_MAP_CODE,
					  .pid = pid,
					  .time = time,
					  .start = start,
					  .end = start + 0x1000,
					  .offset = 0x40 };

	assert_int_equal(nps_spaces__add(s, &r, path), 0);
}

static void event(struct nps_spaces *s, uint8_t what, uint32_t pid, uint64_t time, uint64_t child)
{
	const struct nps_map_record r = { .what = what, .pid = pid, .time = time, .start = child };

	assert_int_equal(nps_spaces__add(s, &r, ""), 0);
}

/* "" where nothing is known. */
static const char *at(const struct nps_spaces *s, uint32_t pid, uint64_t time, uint64_t address)
{
	const struct nps_code *code = nps_spaces__find(s, pid, time, address);

	return code ? NPS_AT(&s->modules, struct nps_module, code->module).path : "";
}

static void mappings_over_time(void **state)
{
	struct nps_spaces s;

	(void)state;
	nps_spaces__init(&s, tmp_fd);
	/* in no order */
	map(&s, 1, 300, 0x1000, "/new");
	map(&s, 1, 100, 0x1000, "/old");
	map(&s, 1, 200, 0x8000, "/b");
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_string_equal(at(&s, 1, 99, 0x1000), "");
	assert_string_equal(at(&s, 1, 100, 0x1000), "/old");
	assert_string_equal(at(&s, 1, 299, 0x1fff), "/old");
	assert_string_equal(at(&s, 1, 300, 0x1fff), "/new");
	assert_string_equal(at(&s, 1, 300, 0x2000), "");
	assert_string_equal(at(&s, 1, 150, 0x8000), "");
	assert_string_equal(at(&s, 1, 250, 0x8000), "/b");
	assert_string_equal(at(&s, 2, 250, 0x8000), "");
	/* back in time: what was found before holds for its own time only */
	for (int round = 0; round < 3; round++) {
		assert_string_equal(at(&s, 1, 150, 0x1000), "/old");
		assert_string_equal(at(&s, 1, 350, 0x1000), "/new");
		assert_string_equal(at(&s, 1, 50, 0x1000), "");
		assert_string_equal(at(&s, 1, 199, 0x8000), "");
		assert_string_equal(at(&s, 1, 200, 0x8000), "/b");
	}
	nps_spaces__free(&s);
}

static void births_and_executions(void **state)
{
	struct nps_spaces s;

	(void)state;
	nps_spaces__init(&s, tmp_fd);
	map(&s, 1, 100, 0x1000, "/a");
	event(&s, NPS_MAP_FORK, 1, 200, 2);
	map(&s, 1, 250, 0x5000, "/later"); /* the child does not have it */
	event(&s, NPS_MAP_FORK, 2, 300, 3);
	map(&s, 3, 310, 0x7000, "/own");
	event(&s, NPS_MAP_EXEC, 2, 400, 0);
	map(&s, 2, 410, 0x1000, "/program");
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_string_equal(at(&s, 2, 260, 0x1000), "/a");
	assert_string_equal(at(&s, 2, 260, 0x5000), "");
	assert_string_equal(at(&s, 2, 405, 0x1000), "");
	assert_string_equal(at(&s, 2, 410, 0x1000), "/program");
	assert_string_equal(at(&s, 3, 500, 0x1000), "/a"); /* from before its parent executed another */
	assert_string_equal(at(&s, 3, 500, 0x7000), "/own");
	nps_spaces__free(&s);
}

/* Processes that are each other's parents: damaged input, or numbers that came again. */
static void circles_end(void **state)
{
	struct nps_spaces s;

	(void)state;
	nps_spaces__init(&s, tmp_fd);
	event(&s, NPS_MAP_FORK, 1, 100, 2);
	event(&s, NPS_MAP_FORK, 2, 100, 1);
	event(&s, NPS_MAP_FORK, 3, 100, 3);
	event(&s, 77, 3, 100, 3);
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_string_equal(at(&s, 1, 200, 0x1000), "");
	assert_string_equal(at(&s, 3, 200, 0x1000), "");
	nps_spaces__free(&s);
}

static uint8_t hex_byte(const char *s)
{
	const char byte[3] = { s[0], s[1], 0 };

	return (uint8_t)strtoul(byte, NULL, 16);
}

/* The build-id that the linker gave this program, from another reader of it. */
static size_t own_build_id(uint8_t id[20])
{
	char line[256], *at;
	size_t n = 0;
	FILE *p = popen("readelf -n /proc/$PPID/exe", "re");

	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		at = strstr(line, "Build ID: ");
		for (; at && n < 20; n++)
			id[n] = hex_byte(at + 10 + 2 * n);
	}
	pclose(p);
	return n;
}

/* A process that maps code all the time: at one place it is one entry, else there are so many and no more. */
static void mappings_without_end(void **state)
{
	struct nps_spaces s;

	(void)state;
	nps_spaces__init(&s, tmp_fd);
	for (uint64_t i = 0; i < 300000; i++)
		map(&s, 1, 100 + i, 0x1000, "/a");
	for (uint64_t i = 0; i < 300000; i++)
		map(&s, 2, 100 + i, 0x1000 * (i + 1), "/b");
	assert_int_equal(s.left_out, 300000 - 65536);
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_string_equal(at(&s, 1, 100, 0x1000), "/a");
	assert_string_equal(at(&s, 1, 1UL << 30, 0x1000), "/a");
	assert_string_equal(at(&s, 1, 99, 0x1000), "");
	assert_string_equal(at(&s, 2, 1UL << 30, 0x1000), "/b");
	assert_int_equal(NPS_AT(&s.spaces, struct nps_vec, 0).len, 1);
	nps_spaces__free(&s);
}

static void only_the_build_that_ran(void **state)
{
	struct nps_map_record r = {
		.what = NPS_MAP_CODE, .pid = 1, .time = 1, .start = 0x1000, .end = 0x2000, .build_id_len = 20
	};
	const char *example = "";
	char path[4096] = "";
	struct nps_spaces s;

	(void)state;
	if (own_build_id(r.build_id) != 20)
		skip();
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	nps_spaces__init(&s, tmp_fd);
	assert_int_equal(nps_spaces__add(&s, &r, path), 0);
	r.start = 0x5000;
	r.end = 0x6000;
	r.build_id[7] ^= 1;
	assert_int_equal(nps_spaces__add(&s, &r, path), 0);
	map(&s, 1, 1, 0x9000, "/dev/null");
	map(&s, 1, 1, 0xb000, "//anon");
	assert_int_equal(nps_spaces__finish(&s), 0);
	assert_non_null(nps_spaces__image(&s, nps_spaces__find(&s, 1, 2, 0x1000)));
	assert_int_equal(nps_spaces__missing(&s, &example), 0);
	assert_null(nps_spaces__image(&s, nps_spaces__find(&s, 1, 2, 0x5000)));
	assert_int_equal(nps_spaces__missing(&s, &example), 1);
	assert_string_equal(example, path);
	assert_null(nps_spaces__image(&s, nps_spaces__find(&s, 1, 2, 0x9000)));
	assert_null(nps_spaces__image(&s, nps_spaces__find(&s, 1, 2, 0xb000)));
	assert_int_equal(nps_spaces__missing(&s, &example), 2); /* what is in no file is not missing */
	nps_spaces__free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_over_time),
		cmocka_unit_test(births_and_executions),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(mappings_without_end),
		cmocka_unit_test(only_the_build_that_ran),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
