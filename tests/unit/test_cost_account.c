/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/cost_account.h"

#define SECOND 1000000000ULL

static const bool all_there[NPS_SHED_STAGES] = { true, true, true, true, true, true };
static const double cost[NPS_COST_KINDS] = {
	[NPS_COST_CALL] = 1000, [NPS_COST_MARK] = 500,	 [NPS_COST_SYSCALL] = 300,
	[NPS_COST_SUM] = 100,	[NPS_COST_SWITCH] = 200, [NPS_COST_FAULT] = 50,
};

static void close_to(double found, double expected)
{
	assert_true(found > expected - 1e-6 && found < expected + 1e-6);
}

/* Each occurrence at the cost of its time: a later, lower cost takes nothing back. */
static void costs_that_change(void **state)
{
	uint64_t totals[NPS_COST_KINDS] = { [NPS_COST_CALL] = 100000 };
	double low[NPS_COST_KINDS] = { [NPS_COST_CALL] = 600 }, percent;
	struct nps_account a = { 0 };

	(void)state;
	nps_account__add(&a, totals, cost);
	assert_int_equal(nps_account__judge(&a, SECOND, 50, all_there, &percent), -1);
	close_to(percent, 10);
	totals[NPS_COST_CALL] += 10;
	nps_account__add(&a, totals, low);
	close_to(nps_account__sum(a.spent), 100000 * 1000.0 + 10 * 600.0);
	assert_int_equal(nps_account__judge(&a, 2 * SECOND, 0.1, all_there, &percent), -1);
	close_to(percent, 100 * 6000 / 1e9);
}

/* What cost much before and nothing now is no reason to give anything up. */
static void only_the_interval_counts(void **state)
{
	uint64_t totals[NPS_COST_KINDS] = { [NPS_COST_SYSCALL] = 3000000, [NPS_COST_CALL] = 100 };
	struct nps_account a = { 0 };
	double percent;

	(void)state;
	nps_account__add(&a, totals, cost);
	assert_int_equal(nps_account__judge(&a, SECOND, 100, all_there, &percent), -1);
	close_to(percent, 90.01);
	totals[NPS_COST_CALL] += 100000;
	nps_account__add(&a, totals, cost);
	/* Of system calls there are none any more: to give them up would save nothing. */
	assert_int_equal(nps_account__judge(&a, 2 * SECOND, 5, all_there, &percent), NPS_SHED_DETAIL);
	close_to(percent, 10);
}

/*
 * What was reported by an estimate is reported by the measured cost, from the
 * beginning, and the interval is judged by it.
 */
static void prices_that_come_late(void **state)
{
	uint64_t totals[NPS_COST_KINDS] = { [NPS_COST_CALL] = 1000,
					    [NPS_COST_CALL + NPS_PROBE_STEPPED] = 10000,
					    [NPS_COST_MARK + NPS_PROBE_NOP] = 500 };
	double dear[NPS_COST_KINDS], measured[NPS_COST_KINDS] = { 0 }, percent;
	struct nps_account a = { 0 };

	(void)state;
	for (int i = 0; i < NPS_COST_KINDS; i++)
		dear[i] = 1e6;
	measured[NPS_COST_CALL] = 5000;
	measured[NPS_COST_CALL + NPS_PROBE_STEPPED] = 20000;
	measured[NPS_COST_MARK + NPS_PROBE_NOP] = 1000;
	nps_account__add(&a, totals, dear);
	nps_account__price_anew(&a, measured);
	close_to(nps_account__sum_of_classes(a.spent, NPS_COST_CALL), 5e6 + 2e8);
	close_to(nps_account__sum_of_classes(a.spent, NPS_COST_MARK), 5e5);
	close_to(nps_account__sum(a.spent), 5e6 + 2e8 + 5e5);
	assert_int_equal(nps_account__judge(&a, SECOND, 50, all_there, &percent), -1);
	close_to(percent, 100 * (5e6 + 2e8 + 5e5) / 1e9);
	/* What was judged is not judged again. */
	totals[NPS_COST_CALL] += 1000;
	nps_account__add(&a, totals, dear);
	nps_account__price_anew(&a, measured);
	nps_account__judge(&a, 2 * SECOND, 50, all_there, &percent);
	close_to(percent, 100 * 5e6 / 1e9);
}

static void in_order(void **state)
{
	uint64_t totals[NPS_COST_KINDS] = { 0 };
	struct nps_account a = { 0 };
	double percent;

	(void)state;
	for (int stage = 0; stage < NPS_SHED_STAGES; stage++) {
		for (int kind = 0; kind < NPS_COST_KINDS; kind++)
			totals[kind] += 100000;
		nps_account__add(&a, totals, cost);
		assert_int_equal(nps_account__judge(&a, (stage + 1) * SECOND, 1, all_there, &percent), stage);
	}
	totals[0] += 1000000;
	nps_account__add(&a, totals, cost);
	assert_int_equal(nps_account__judge(&a, 100 * SECOND, 0.1, all_there, &percent), -1);
	assert_true(percent > 0.1);
}

/* A stage that was passed over is taken when it costs. */
static void later(void **state)
{
	uint64_t totals[NPS_COST_KINDS] = { [NPS_COST_CALL] = 1000000 };
	struct nps_account a = { 0 };
	double percent;

	(void)state;
	nps_account__add(&a, totals, cost);
	assert_int_equal(nps_account__judge(&a, SECOND, 1, all_there, &percent), NPS_SHED_DETAIL);
	totals[NPS_COST_SYSCALL] += 1000000;
	nps_account__add(&a, totals, cost);
	assert_int_equal(nps_account__judge(&a, 2 * SECOND, 1, all_there, &percent), NPS_SHED_RECORDS);
	totals[NPS_COST_SUM] += 1000000;
	nps_account__add(&a, totals, cost);
	assert_int_equal(nps_account__judge(&a, 3 * SECOND, 1, all_there, &percent), NPS_SHED_SYSCALLS);
}

static void what_is_not_there(void **state)
{
	const bool can[NPS_SHED_STAGES] = { [NPS_SHED_NAMES] = true };
	uint64_t totals[NPS_COST_KINDS] = { 1000000, 1000000, 1000000, 1000000, 1000000, 1000000 };
	struct nps_account a = { 0 };
	double percent;

	(void)state;
	nps_account__add(&a, totals, cost);
	assert_int_equal(nps_account__judge(&a, SECOND, 1, can, &percent), NPS_SHED_NAMES);
}

/* An interval of too little CPU time goes on, and nothing of it is forgotten. */
static void short_intervals(void **state)
{
	uint64_t totals[NPS_COST_KINDS] = { 0 };
	struct nps_account a = { 0 };
	double percent;

	(void)state;
	for (int i = 1; i <= 9; i++) {
		totals[NPS_COST_CALL] += 1000;
		nps_account__add(&a, totals, cost);
		assert_int_equal(nps_account__judge(&a, i * SECOND / 50, 0.1, all_there, &percent), -1);
		assert_true(percent < 0);
	}
	totals[NPS_COST_CALL] += 1000;
	nps_account__add(&a, totals, cost);
	assert_int_equal(nps_account__judge(&a, SECOND / 5, 0.1, all_there, &percent), NPS_SHED_DETAIL);
	close_to(percent, 5);
}

/* Counters that are read one after the other, a cost that could not be measured, no limit. */
static void odd_numbers(void **state)
{
	uint64_t totals[NPS_COST_KINDS] = { [NPS_COST_CALL] = 1000, [NPS_COST_FAULT] = 7 };
	double some[NPS_COST_KINDS] = { [NPS_COST_CALL] = 1000, [NPS_COST_FAULT] = -1 };
	struct nps_account a = { 0 };
	double percent;

	(void)state;
	nps_account__add(&a, totals, some);
	totals[NPS_COST_CALL] = 990;
	nps_account__add(&a, totals, some);
	totals[NPS_COST_CALL] = 1001;
	nps_account__add(&a, totals, some);
	close_to(nps_account__sum(a.spent), 1001 * 1000.0);
	assert_int_equal(nps_account__judge(&a, SECOND, 0, all_there, &percent), -1);
	/* the job's CPU time seems to go back */
	assert_int_equal(nps_account__judge(&a, SECOND / 2, 1, all_there, &percent), -1);
	assert_true(percent < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_that_change),
		cmocka_unit_test(only_the_interval_counts),
		cmocka_unit_test(prices_that_come_late),
		cmocka_unit_test(in_order),
		cmocka_unit_test(later),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(short_intervals),
		cmocka_unit_test(odd_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
