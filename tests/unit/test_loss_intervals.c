/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>

#include "import/session/loss_intervals.h"

static void nothing_was_lost(void **state)
{
	struct nps_loss_intervals intervals;

	(void)state;
	nps_loss_intervals__init(&intervals, AT_FDCWD);
	assert_int_equal(nps_loss_intervals__finish(&intervals), 0);
	assert_false(nps_loss_intervals__overlap(&intervals, 0, 0, UINT64_MAX));
	nps_loss_intervals__free(&intervals);
}

static void ends_belong_to_it(void **state)
{
	struct nps_loss_intervals intervals;

	(void)state;
	nps_loss_intervals__init(&intervals, AT_FDCWD);
	assert_int_equal(nps_loss_intervals__add(&intervals, 1, 50, UINT64_MAX), 0);
	assert_int_equal(nps_loss_intervals__add(&intervals, 1, 10, 20), 0);
	assert_int_equal(nps_loss_intervals__finish(&intervals), 0);
	assert_false(nps_loss_intervals__overlap(&intervals, 1, 0, 9));
	assert_true(nps_loss_intervals__overlap(&intervals, 1, 0, 10));
	assert_true(nps_loss_intervals__overlap(&intervals, 1, 20, 30));
	assert_false(nps_loss_intervals__overlap(&intervals, 1, 21, 49));
	assert_true(nps_loss_intervals__overlap(&intervals, 1, 1000, 1000));
	assert_false(nps_loss_intervals__overlap(&intervals, 0, 0, UINT64_MAX));
	assert_false(nps_loss_intervals__overlap(&intervals, 2, 0, UINT64_MAX));
	nps_loss_intervals__free(&intervals);
}

#define SPANS 40
#define TIMES 200

static void as_one_by_one(void **state)
{
	struct {
		uint64_t from, to;
		uint32_t proc;
	} spans[SPANS];
	struct nps_loss_intervals intervals;

	(void)state;
	srand(1);
	nps_loss_intervals__init(&intervals, AT_FDCWD);
	for (size_t i = 0; i < SPANS; i++) {
		spans[i].from = rand() % TIMES;
		spans[i].to = spans[i].from + rand() % 8;
		spans[i].proc = rand() % 3;
		assert_int_equal(
			nps_loss_intervals__add(&intervals, spans[i].proc, spans[i].from, spans[i].to), 0);
	}
	assert_int_equal(nps_loss_intervals__finish(&intervals), 0);
	for (uint32_t proc = 0; proc < 3; proc++) {
		for (uint64_t from = 0; from < TIMES; from++) {
			uint64_t to = from + rand() % 3;
			bool in = false;

			for (size_t i = 0; i < SPANS; i++)
				in |= spans[i].proc == proc && spans[i].from <= to && spans[i].to >= from;
			assert_int_equal(nps_loss_intervals__overlap(&intervals, proc, from, to), in);
		}
	}
	nps_loss_intervals__free(&intervals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_was_lost),
		cmocka_unit_test(ends_belong_to_it),
		cmocka_unit_test(as_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
