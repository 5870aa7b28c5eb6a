/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as CSV files have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/csv_number.h"
#include "model/model.h"

static void expect_repr(double value, const char *expected)
{
	char out[NPS_NUMBER_MAX + 1];

	out[nps_put_repr(out, value)] = 0;
	assert_string_equal(out, expected);
}

static void floats_of_python(void **state)
{
	(void)state;
	expect_repr(0, "0.0");
	expect_repr(-0.5, "-0.5");
	expect_repr(0.1, "0.1");
	expect_repr(0.1 + 0.2, "0.30000000000000004");
	expect_repr(4.1e-05, "4.1e-05");
	expect_repr(0.00123, "0.00123");
	expect_repr(1e15, "1000000000000000.0");
	expect_repr(1e16, "1e+16");
	expect_repr(123456789012345680.0, "1.2345678901234568e+17");
	expect_repr(8873.756000000001, "8873.756000000001");
	expect_repr(954.3701171875, "954.3701171875");
	expect_repr(12345.00048828125, "12345.00048828125");
	expect_repr(5e-324, "5e-324");
	expect_repr(100, "100.0");
}

/* Digits but for zeros at both ends. */
static size_t significant(const char *number)
{
	size_t digits = 0, kept = 0;

	for (; *number && *number != 'e'; number++) {
		if (*number == '.' || (*number == '0' && !kept))
			continue;
		digits++;
		if (*number != '0')
			kept = digits;
	}
	return kept;
}

/* Whatever is printed reads back, and nothing shorter does. */
static void floats_round_trip(void **state)
{
	uint64_t random = 88172645463325252ULL;
	char out[NPS_NUMBER_MAX + 1], shortest[64];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		double value;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		value = i & 1 ? (double)(random >> 20) / 1000 : (double)random / 1048576 / 4096;
		out[nps_put_repr(out, value)] = 0;
		assert_true(strtod(out, NULL) == value);
		for (int digits = 1; digits <= 17; digits++) {
			snprintf(shortest, sizeof(shortest), "%.*g", digits, value);
			if (strtod(shortest, NULL) == value)
				break;
		}
		assert_int_equal(significant(out), significant(shortest));
	}
}

static void expect_milli(double value, uint64_t expected)
{
	assert_int_equal(nps_thousandths(value), expected);
}

static void rounding_is_that_of_printf(void **state)
{
	(void)state;
	expect_milli(0.0005, 1); /* the double is a little more */
	expect_milli(0.0015, 2);
	expect_milli(2.5e-3, 3);
	expect_milli(1.0005, 1000); /* a little less */
	expect_milli(310.5257638888889, 310526);
	expect_milli(-1, 0);
	expect_milli(NPS_NAN, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floats_of_python),
		cmocka_unit_test(floats_round_trip),
		cmocka_unit_test(rounding_is_that_of_printf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
