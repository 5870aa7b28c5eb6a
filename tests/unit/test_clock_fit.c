/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "session/clock_fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define COUNTER0 123456789000ULL
#define RAW0 5000000000000ULL

/* A read of a 50 MHz counter that runs PPM fast, at RAW0 + AFTER ns, the counter read at LATE of the bracket. */
static struct nps_device_clock at(uint64_t after, double ppm, uint64_t width, double late)
{
	uint64_t read = RAW0 + after;

	return (struct nps_device_clock){ .raw_before = read - (uint64_t)(width * late),
					  .raw_after = read - (uint64_t)(width * late) + width,
					  .counter = COUNTER0 +
						     (uint64_t)llround(after * 0.05 * (1 + ppm * 1e-6)) };
}

static uint64_t error_at(const struct nps_clock_fit *fit, uint64_t after, double ppm)
{
	uint64_t raw = nps_clock_fit__raw(fit, COUNTER0 + (uint64_t)llround(after * 0.05 * (1 + ppm * 1e-6)));

	return llabs((int64_t)(raw - (RAW0 + after)));
}

static void one_read_has_the_nominal_rate(void **state)
{
	struct nps_device_clock read = at(0, 0, 4000, 0.5);
	struct nps_clock_fit fit;

	(void)state;
	assert_int_equal(nps_clock_fit__fit(&fit, &read, 1, 50000), 0);
	assert_true(fit.ns_per_tick == 20.0);
	assert_int_equal(nps_clock_fit__raw(&fit, COUNTER0), RAW0);
	assert_int_equal(nps_clock_fit__raw(&fit, COUNTER0 + 50), RAW0 + 1000);
	assert_int_equal(nps_clock_fit__raw(&fit, COUNTER0 - 50), RAW0 - 1000);
	assert_true(fit.uncertainty_ns == 2000.0);
}

static void drift_is_found(void **state)
{
	struct nps_device_clock reads[20];
	struct nps_clock_fit fit;

	(void)state;
	for (int i = 0; i < 20; i++)
		reads[i] = at(i * 1000000000ULL, 40, 4000, 0.5);
	assert_int_equal(nps_clock_fit__fit(&fit, reads, 20, 50000), 0);
	assert_true(fabs(fit.drift_ppm - 40) < 0.1);
	assert_true(fit.residual_ns < 20); /* one tick */
	for (int i = 0; i < 40; i++)
		assert_true(error_at(&fit, i * 500000000ULL, 40) < 50);
	/* the nominal rate would be 760 us off by then */
	assert_true(error_at(&fit, 19000000000ULL, 40) < 50);
}

static void wide_brackets_do_not_pull(void **state)
{
	struct nps_device_clock reads[40];
	struct nps_clock_fit fit;

	(void)state;
	for (int i = 0; i < 40; i++)
		reads[i] = i % 4 ? at(i * 500000000ULL, -25, 3000, 0.5)
				 : at(i * 500000000ULL, -25, 900000, 0.02);
	assert_int_equal(nps_clock_fit__fit(&fit, reads, 40, 50000), 0);
	assert_int_equal(fit.used, 30);
	assert_true(fabs(fit.drift_ppm + 25) < 0.1);
	for (int i = 0; i < 40; i++)
		assert_true(error_at(&fit, i * 500000000ULL, -25) < 100);
}

static void noise_averages_out(void **state)
{
	static const double late[] = { 0.31, 0.72, 0.55, 0.44, 0.61, 0.38, 0.67, 0.5 };
	struct nps_device_clock reads[64];
	struct nps_clock_fit fit;

	(void)state;
	for (int i = 0; i < 64; i++)
		reads[i] = at(i * 250000000ULL, 17, 10000 + i % 5 * 1000, late[i * 5 % 8]);
	assert_int_equal(nps_clock_fit__fit(&fit, reads, 64, 50000), 0);
	for (int i = 0; i < 64; i++)
		assert_true(error_at(&fit, i * 250000000ULL, 17) < 1000);
}

static void reads_close_together_say_nothing_about_the_rate(void **state)
{
	struct nps_device_clock reads[2] = { at(0, 0, 8000, 0.1), at(1000000, 0, 8000, 0.9) };
	struct nps_clock_fit fit;

	(void)state;
	assert_int_equal(nps_clock_fit__fit(&fit, reads, 2, 50000), 0);
	assert_true(fit.ns_per_tick == 20.0);
}

static void garbage_is_no_clock(void **state)
{
	struct nps_device_clock reads[3] = { { .raw_before = 9, .raw_after = 3, .counter = 1 },
					     { .counter = 0 },
					     { .raw_before = 1, .raw_after = UINT64_MAX, .counter = 5 } };
	struct nps_clock_fit fit;

	(void)state;
	assert_int_equal(nps_clock_fit__fit(&fit, reads, 3, 50000), -ENODATA);
	assert_int_equal(nps_clock_fit__fit(&fit, reads, 0, 50000), -ENODATA);
	reads[0] = at(0, 0, 100, 0.5);
	assert_int_equal(nps_clock_fit__fit(&fit, reads, 1, 0), -ENODATA);
}

static void raw_to_mono_interpolates(void **state)
{
	/* mono - raw goes from -1000 to -900 over 1000 ns of raw */
	const struct nps_clock samples[] = { { .raw = 10000, .mono = 9000 },
					     { .raw = 11000, .mono = 10100 } };

	(void)state;
	assert_int_equal(nps_raw_to_mono(samples, 2, 10000), 9000);
	assert_int_equal(nps_raw_to_mono(samples, 2, 10500), 9550);
	assert_int_equal(nps_raw_to_mono(samples, 2, 11000), 10100);
	assert_int_equal(nps_raw_to_mono(samples, 2, 20000), 19100); /* after the last: its offset */
	assert_int_equal(nps_raw_to_mono(samples, 2, 5000), 4000); /* before the first: its offset */
	assert_int_equal(nps_raw_to_mono(samples, 0, 5000), 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_read_has_the_nominal_rate),
		cmocka_unit_test(drift_is_found),
		cmocka_unit_test(wide_brackets_do_not_pull),
		cmocka_unit_test(noise_averages_out),
		cmocka_unit_test(reads_close_together_say_nothing_about_the_rate),
		cmocka_unit_test(garbage_is_no_clock),
		cmocka_unit_test(raw_to_mono_interpolates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
