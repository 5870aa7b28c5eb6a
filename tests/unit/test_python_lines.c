/* SPDX-License-Identifier: BSD-2-Clause */
/* Line tables of each format, written down by hand; and bytes that are none, which must end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "stack/python_lines.h"

#define LINE(version, table, at) nps_python_line(version, 10, table, sizeof(table), at)

static void lnotab(void **state)
{
	/* 6 bytes of line 10, 50 of 12; 300 lines on in two steps; back by 2. */
	static const uint8_t table[] = { 6, 2, 50, 127, 0, 127, 0, 46, 8, 0xfe };

	(void)state;
	for (uint16_t version = 0x0308; version <= 0x0309; version++) {
		assert_int_equal(LINE(version, table, -1), 10);
		assert_int_equal(LINE(version, table, 0), 10);
		assert_int_equal(LINE(version, table, 4), 10);
		assert_int_equal(LINE(version, table, 6), 12);
		assert_int_equal(LINE(version, table, 54), 12);
		assert_int_equal(LINE(version, table, 56), 312);
		assert_int_equal(LINE(version, table, 64), 310);
		assert_int_equal(LINE(version, table, 10000), 310);
	}
	assert_int_equal(nps_python_line(0x0308, 10, table, 0, 4), 10);
}

static void ranges_of_310(void **state)
{
	/* 4 bytes of line 11, 2 without a line, 6 of line 10; then 254 + 2 bytes of 137. */
	static const uint8_t table[] = { 4, 1, 2, 0x80, 6, 0xff, 0, 127, 254, 0, 2, 0 };

	(void)state;
	assert_int_equal(LINE(0x030a, table, -1), 10);
	assert_int_equal(LINE(0x030a, table, 0), 11);
	assert_int_equal(LINE(0x030a, table, 2), 11);
	assert_int_equal(LINE(0x030a, table, 4), 0);
	assert_int_equal(LINE(0x030a, table, 6), 10);
	assert_int_equal(LINE(0x030a, table, 10), 10);
	assert_int_equal(LINE(0x030a, table, 12), 137);
	assert_int_equal(LINE(0x030a, table, 266), 137);
	assert_int_equal(LINE(0x030a, table, 268), 0); /* after the code's end */
}

static void locations(void **state)
{
	static const uint8_t table[] = {
		0x80 | 13 << 3 | 1, 0, /* 2 units, no columns, line 10 */
		0x80 | 0 << 3 | 0,  0x11, /* 1 unit, short form: the same line */
		0x80 | 11 << 3 | 7, 1,	      2, /* 8 units, one line on: 11 */
		0x80 | 15 << 3 | 0, /* 1 unit without a line */
		0x80 | 12 << 3 | 0, 1,	      2, /* 13 */
		0x80 | 14 << 3 | 0, 0x40 | 8, 40, 1, 2, 3, /* long form, 8 | 40 << 6 = 2568: 1284 on */
		0x80 | 13 << 3 | 0, 0x40 | 9, 40, /* back by 1284 */
	};

	(void)state;
	for (uint16_t version = 0x030b; version <= 0x030f; version++) {
		assert_int_equal(LINE(version, table, -1), 10);
		assert_int_equal(LINE(version, table, 0), 10);
		assert_int_equal(LINE(version, table, 4), 10);
		assert_int_equal(LINE(version, table, 6), 11);
		assert_int_equal(LINE(version, table, 20), 11);
		assert_int_equal(LINE(version, table, 22), 0);
		assert_int_equal(LINE(version, table, 24), 13);
		assert_int_equal(LINE(version, table, 26), 1297);
		assert_int_equal(LINE(version, table, 28), 13);
		assert_int_equal(LINE(version, table, 30), 0);
	}
}

/* Without a byte that begins an entry, ones that end inside a number, numbers without an end. */
static void damaged_tables(void **state)
{
	static const uint8_t no_entry[] = { 1, 2, 3, 4 },
			     endless[] = { 0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f };
	uint8_t *table;

	(void)state;
	assert_int_equal(LINE(0x030b, no_entry, 100), 0);
	assert_int_equal(LINE(0x030b, endless, 0), 0);
	srand(1);
	for (int i = 0; i < 200000; i++) {
		size_t n = (size_t)rand() % 64;
		uint16_t version = (uint16_t)(0x0308 + rand() % 8);

		/* Of that size: a sanitizer finds what is read after its end. */
		table = malloc(n + !n);
		assert_non_null(table);
		for (size_t j = 0; j < n; j++)
			table[j] = (uint8_t)rand();
		assert_true(nps_python_line(version, rand() % 3 ? rand() : INT32_MAX, table, n,
					    rand() % 400 - 2) >= 0);
		free(table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lnotab),
		cmocka_unit_test(ranges_of_310),
		cmocka_unit_test(locations),
		cmocka_unit_test(damaged_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
