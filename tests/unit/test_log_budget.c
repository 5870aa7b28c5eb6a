/* SPDX-License-Identifier: BSD-2-Clause */
/* What logs may cost: token buckets, shares of a session, and a deadline that does not charge for what the machine took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"
#include "log_budget.h"

#define SECOND 1000000000ULL

static void bucket_gives_what_accrues(void **state)
{
	struct nps_rate_limit r;

	(void)state;
	nps_rate_limit__init(&r, 1000, 500, SECOND);
	nps_rate_limit__spend(&r, 499);
	assert_true(nps_rate_limit__refill(&r, SECOND));
	nps_rate_limit__spend(&r, 301);
	assert_false(nps_rate_limit__refill(&r, SECOND));
	/* 300 too many were spent: they come first */
	assert_false(nps_rate_limit__refill(&r, SECOND + SECOND * 300 / 1000));
	assert_true(nps_rate_limit__refill(&r, SECOND + SECOND * 301 / 1000));
	assert_int_equal(r.left, 1);
}

static void bucket_holds_no_more_than_its_burst(void **state)
{
	struct nps_rate_limit r;

	(void)state;
	nps_rate_limit__init(&r, 1000, 500, 0);
	assert_true(nps_rate_limit__refill(&r, UINT64_MAX / 2));
	assert_int_equal(r.left, 500);
	nps_rate_limit__init(&r, UINT64_MAX / 4, 500, 0);
	assert_true(nps_rate_limit__refill(&r, UINT64_MAX));
	assert_int_equal(r.left, 500);
}

/* Looks that come faster than a token accrues: it does all the same, and a clock that goes back is none. */
static void bucket_fills_in_small_steps(void **state)
{
	struct nps_rate_limit r;

	(void)state;
	nps_rate_limit__init(&r, 10, 5, 0);
	nps_rate_limit__spend(&r, 5);
	for (uint64_t t = 0; t < SECOND / 10; t += SECOND / 1000)
		assert_false(nps_rate_limit__refill(&r, t));
	assert_true(nps_rate_limit__refill(&r, SECOND / 10));
	assert_int_equal(r.left, 1);
	assert_true(nps_rate_limit__refill(&r, 0));
	assert_int_equal(r.left, 1);
}

static void init(struct nps_log_budget *b, struct nps_session *s, uint64_t max)
{
	memset(s, 0, sizeof(*s));
	nps_log_budget__init(b, s, max, NPS_LOG_RATE);
}

/* What is written counts for all. Returns how much an account can have. */
static uint64_t fill(struct nps_log_account *a, struct nps_session *s)
{
	uint64_t n = 0;

	for (; !nps_log_account__add_bytes(a, 1000); n += 1000)
		nps_session__add_bytes(s, 1000);
	assert_int_equal(a->state, NPS_LOG_ENDED);
	assert_false(nps_log_account__may_read(a));
	assert_int_equal(nps_log_account__add_bytes(a, 1), -EDQUOT);
	return n;
}

/* Each takes as much as is left for all others: a half, a third each, and so on. */
static void logs_leave_room_for_others(void **state)
{
	struct nps_log_account first, second, third;
	struct nps_log_budget b;
	struct nps_session s;

	(void)state;
	init(&b, &s, 12000000);
	nps_log_account__init(&first, &b, true);
	nps_log_account__init(&second, &b, true);
	nps_log_account__init(&third, &b, false);
	assert_in_range(fill(&first, &s), 5998000, 6000000);
	assert_in_range(fill(&second, &s), 2998000, 3000000);
	assert_in_range(fill(&third, &s), 1498000, 1500000);
}

static void session_that_is_full_takes_nothing(void **state)
{
	struct nps_log_account a;
	struct nps_log_budget b;
	struct nps_session s;

	(void)state;
	init(&b, &s, 1000);
	nps_log_account__init(&a, &b, true);
	nps_session__add_bytes(&s, 2000);
	assert_int_equal(nps_log_account__add_bytes(&a, 0), -EDQUOT);
	init(&b, &s, 1000);
	nps_log_account__init(&a, &b, true);
	assert_int_equal(nps_log_account__add_bytes(&a, UINT64_MAX), -EDQUOT);
}

static void time_of_all_is_nobodys_fault(void **state)
{
	struct nps_log_account busy, other, own;
	struct nps_log_budget b;
	struct nps_session s;

	(void)state;
	init(&b, &s, 1 << 30);
	nps_log_account__init(&busy, &b, true);
	nps_log_account__init(&other, &b, true);
	nps_log_account__init(&own, &b, false); /* of a thread of its own */
	assert_true(nps_log_account__may_read(&busy) && nps_log_account__may_read(&other));
	for (int i = 0; i < 3; i++) /* its own part first, then the common time */
		nps_log_account__add_cpu(&busy, 3600 * SECOND);
	assert_false(nps_log_account__may_read(&busy));
	assert_int_equal(busy.state, NPS_LOG_SLOWED);
	assert_true(b.cpu.left < 0);
	other.fair.left = 0; /* whatever accrued so far */
	usleep(1000);
	assert_true(nps_log_account__may_read(&other)); /* the part that is left to it */
	nps_log_account__add_cpu(&other, SECOND / 100);
	nps_log_account__add_cpu(&other, SECOND / 100);
	assert_int_equal(other.state, NPS_LOG_OPEN);
	assert_true(nps_log_account__may_read(&own));
	nps_log_account__add_cpu(&own, 3600 * SECOND);
	assert_false(nps_log_account__may_read(&own));
}

static void directories_are_counted(void **state)
{
	struct nps_log_budget b;
	struct nps_session s;

	(void)state;
	init(&b, &s, 1 << 30);
	for (int i = 0; i < NPS_LOG_DIRECTORIES; i++)
		assert_int_equal(nps_log_budget__add_directory(&b), 0);
	assert_int_equal(nps_log_budget__add_directory(&b), -E2BIG);
}

/* Four times a turn pass unseen: one turn is charged. */
static void deadline_charges_a_turn_at_most(void **state)
{
	struct nps_deadline d;
	uint64_t left;

	(void)state;
	nps_deadline__init(&d, 2 * NPS_DEADLINE_TURN_NS);
	usleep(4 * NPS_DEADLINE_TURN_NS / 1000);
	assert_int_equal(nps_deadline__left(&d), NPS_DEADLINE_TURN_NS);
	usleep(1000);
	left = nps_deadline__left(&d);
	assert_true(left < NPS_DEADLINE_TURN_NS);
	while (nps_deadline__left(&d))
		usleep(1000);
	assert_int_equal(nps_deadline__left(&d), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bucket_gives_what_accrues),
		cmocka_unit_test(bucket_holds_no_more_than_its_burst),
		cmocka_unit_test(bucket_fills_in_small_steps),
		cmocka_unit_test(logs_leave_room_for_others),
		cmocka_unit_test(session_that_is_full_takes_nothing),
		cmocka_unit_test(time_of_all_is_nobodys_fault),
		cmocka_unit_test(directories_are_counted),
		cmocka_unit_test(deadline_charges_a_turn_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
