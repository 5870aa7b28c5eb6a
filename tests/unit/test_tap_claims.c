/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the job's profilers hold, as their calls of the driver show it: in orders
 * that threads of a job can make them in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "capture/log_budget.h"
#include "sources/tasklog/refusals.h"
#include "sources/tasklog/tap_claims.h"

enum { PID = 7, TID = 9, DEVICE = 3, CHANNEL = 44 };

static void start_holds_and_stop_lets_go(void **state)
{
	struct nps_tap_claims c = { 0 };

	(void)state;
	assert_int_equal(nps_tap_claims__enter(&c, PID, TID, DEVICE, CHANNEL), 0);
	assert_true(nps_tap_claims__any(&c, PID, DEVICE));
	assert_false(nps_tap_claims__any(&c, PID, DEVICE + 1));
	assert_int_equal(nps_tap_claims__started(&c, PID, TID, DEVICE, CHANNEL, false), 0);
	assert_false(nps_tap_claims__any(&c, 0, DEVICE));
	assert_int_equal(nps_tap_claims__started(&c, PID, TID, DEVICE, CHANNEL, true), 0);
	assert_true(nps_tap_claims__any(&c, 0, DEVICE));
	assert_int_equal(nps_tap_claims__stopped(&c, PID, DEVICE, CHANNEL, true), 0);
	assert_false(nps_tap_claims__any(&c, 0, DEVICE));
	nps_tap_claims__free(&c);
}

/* A thread that was in the driver's read when another stopped the channel comes back with data. */
static void read_in_flight_claims_nothing(void **state)
{
	struct nps_tap_claims c = { 0 };

	(void)state;
	nps_tap_claims__read(&c, PID, DEVICE, CHANNEL); /* it was open before we looked */
	assert_true(nps_tap_claims__any(&c, PID, DEVICE));
	nps_tap_claims__stopped(&c, PID, DEVICE, CHANNEL, true);
	nps_tap_claims__read(&c, PID, DEVICE, CHANNEL);
	assert_false(nps_tap_claims__any(&c, PID, DEVICE));
	nps_tap_claims__read(&c, PID, DEVICE, CHANNEL + 1); /* another is none of its business */
	assert_true(nps_tap_claims__any(&c, PID, DEVICE));
	nps_tap_claims__stopped(&c, PID, DEVICE, CHANNEL + 1, true);

	nps_tap_claims__started(&c, PID, TID, DEVICE, CHANNEL, true);
	nps_tap_claims__stopped(&c, PID, DEVICE, CHANNEL, true);
	nps_tap_claims__read(&c, PID, DEVICE, CHANNEL);
	assert_false(nps_tap_claims__any(&c, PID, DEVICE));
	nps_tap_claims__free(&c);
}

static void what_goes_on_being_read_is_held(void **state)
{
	struct nps_tap_claims c = { 0 };

	(void)state;
	nps_tap_claims__started(&c, PID, TID, DEVICE, CHANNEL, true);
	nps_tap_claims__stopped(&c, PID, DEVICE, CHANNEL, false); /* the driver refused */
	nps_tap_claims__read(&c, PID, DEVICE, CHANNEL);
	assert_true(nps_tap_claims__any(&c, PID, DEVICE));
	nps_tap_claims__stopped(&c, PID, DEVICE, CHANNEL, true);
	nps_tap_claims__started(&c, PID, TID, DEVICE, CHANNEL, true);
	nps_tap_claims__read(&c, PID, DEVICE, CHANNEL);
	assert_true(nps_tap_claims__any(&c, PID, DEVICE));
	nps_tap_claims__free(&c);
}

static void process_that_ends_leaves_nothing(void **state)
{
	struct nps_tap_claims c = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		nps_tap_claims__started(&c, PID + i % 2, TID, DEVICE, CHANNEL + i, true);
		nps_tap_claims__stopped(&c, PID + i % 2, DEVICE, CHANNEL + i, i % 3 != 0);
		nps_tap_claims__enter(&c, PID + i % 2, TID, DEVICE, CHANNEL + i);
	}
	nps_tap_claims__exited(&c, PID);
	assert_false(nps_tap_claims__any(&c, PID, DEVICE));
	assert_true(nps_tap_claims__any(&c, PID + 1, DEVICE));
	nps_tap_claims__read(&c, PID, DEVICE, CHANNEL + 2); /* a program of that number anew */
	assert_true(nps_tap_claims__any(&c, PID, DEVICE));
	nps_tap_claims__free(&c);
}

/* A job can call the driver with any number, and end the thread before the call returns. */
static void process_has_so_many_and_no_more(void **state)
{
	struct nps_tap_claims c = { 0 };
	uint32_t n = 0;

	(void)state;
	while (n < 10000 && !nps_tap_claims__enter(&c, PID, TID + n, DEVICE, CHANNEL))
		n++;
	assert_in_range(n, 16, 1000);
	assert_int_equal(nps_tap_claims__enter(&c, PID, TID + n, DEVICE, CHANNEL), -E2BIG);
	assert_int_equal(nps_tap_claims__enter(&c, PID, TID, DEVICE, CHANNEL), 0); /* the same thread again */
	assert_int_equal(nps_tap_claims__enter(&c, PID + 1, TID, DEVICE, CHANNEL), 0);
	assert_int_equal(nps_tap_claims__started(&c, PID, TID + n, DEVICE, CHANNEL, true), 0);
	for (uint32_t i = 0; i < n; i++)
		nps_tap_claims__started(&c, PID, TID + i, DEVICE, CHANNEL, false);
	assert_true(nps_tap_claims__any(&c, PID, DEVICE));
	nps_tap_claims__stopped(&c, PID, DEVICE, CHANNEL, true);
	assert_false(nps_tap_claims__any(&c, PID, DEVICE));
	assert_true(nps_tap_claims__any_device(&c, PID + 1));
	assert_false(nps_tap_claims__any_device(&c, PID));
	assert_int_equal(nps_tap_claims__read(&c, PID, 64, CHANNEL), 0); /* there is no such device */
	assert_int_equal(nps_tap_claims__read(&c, PID, DEVICE, UINT32_MAX), 0);
	assert_false(nps_tap_claims__any_device(&c, PID));
	nps_tap_claims__free(&c);
}

/* What one owner's profiler was refused no other owner's helper lets go of. */
static void refusals_are_the_owners(void **state)
{
	static struct nps_log_owner one, other;
	struct nps_refusals r = { 0 };

	(void)state;
	assert_false(nps_refusals__hold(&r, &one, DEVICE, 5));
	assert_int_equal(nps_refusals__add(&r, &one, DEVICE, 10), 0);
	assert_int_equal(nps_refusals__add(&r, NULL, DEVICE, 10), 0);
	assert_true(nps_refusals__hold(&r, &one, DEVICE, 5));
	assert_false(nps_refusals__hold(&r, &one, DEVICE, 10));
	assert_false(nps_refusals__hold(&r, &one, DEVICE + 1, 5));
	assert_false(nps_refusals__hold(&r, &other, DEVICE, 5));
	assert_false(nps_refusals__hold(&r, NULL, DEVICE, 5));
	assert_int_equal(nps_refusals__add(&r, &other, DEVICE + 1, 20), 0);
	assert_int_equal(nps_refusals__add(&r, &one, DEVICE, 30), 0);
	assert_true(nps_refusals__hold(&r, &other, DEVICE + 1, 19));
	assert_true(nps_refusals__hold(&r, &one, DEVICE, 29));
	assert_int_equal(nps_refusals__add(&r, &one, 64, 30), 0); /* there is no such device */
	assert_false(nps_refusals__hold(&r, &one, 64, 5));
	assert_int_equal(r.n, 2);
	nps_refusals__free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_holds_and_stop_lets_go),
		cmocka_unit_test(read_in_flight_claims_nothing),
		cmocka_unit_test(what_goes_on_being_read_is_held),
		cmocka_unit_test(process_that_ends_leaves_nothing),
		cmocka_unit_test(process_has_so_many_and_no_more),
		cmocka_unit_test(refusals_are_the_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
