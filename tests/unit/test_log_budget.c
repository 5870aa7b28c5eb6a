/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What logs may cost: token buckets, shares of a session, and a deadline that
 * does not charge for what the machine took.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/log_budget.h"
#include "core/clocks.h"
#include "core/deadline.h"

#define SECOND 1000000000ULL

static void bucket_releases_what_accrues(void **state)
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

static void init(struct nps_log_budget *b, struct nps_session_writer *s, uint64_t max)
{
	memset(s, 0, sizeof(*s));
	nps_log_budget__init(b, s, max, NPS_LOG_RATE);
}

/* Of a user that nobody is. */
static void account_of(struct nps_log_account *a, struct nps_log_budget *b, uid_t uid)
{
	assert_int_equal(nps_log_account__init(a, b, getpid()), 0);
	assert_int_equal(a->owner->who.uid, getuid());
	if (a->owner == b->owners)
		a->owner->who.uid = uid; /* it was new */
}

/* What is written counts for all. Returns how much an account can have. */
static uint64_t fill(struct nps_log_account *a, struct nps_session_writer *s, uint64_t most)
{
	uint64_t n = 0;

	for (; n < most && !nps_log_account__add_bytes(a, 1000); n += 1000)
		nps_session_writer__add_bytes(s, 1000);
	return n;
}

static void assert_ended(struct nps_log_account *a)
{
	assert_string_equal(a->end, "max_size");
	assert_false(nps_log_account__may_read(a));
	assert_int_equal(nps_log_account__add_bytes(a, 1), -ENOBUFS);
}

/* A job alone has all of the session: the capture ends when that is full, not the log. */
static void one_owner_has_it_all(void **state)
{
	struct nps_log_account first, second;
	struct nps_log_budget b;
	struct nps_session_writer s;

	(void)state;
	init(&b, &s, 12000000);
	assert_int_equal(nps_log_account__init(&first, &b, getpid()), 0);
	assert_int_equal(nps_log_account__init(&second, &b, getpid()), 0);
	assert_ptr_equal(first.owner, second.owner);
	assert_int_equal(fill(&first, &s, 7000000), 7000000);
	assert_int_equal(fill(&second, &s, 5000000), 5000000);
	assert_null(first.end);
	nps_log_budget__free(&b);
}

/*
 * Who floods ends at what is left for others; who has less than an equal part does not, whoever came first.
 */
static void logs_leave_room_for_others(void **state)
{
	struct nps_log_account honest, flood[4];
	struct nps_log_budget b;
	struct nps_session_writer s;

	(void)state;
	init(&b, &s, 12000000);
	account_of(&honest, &b, 4000000001U);
	for (int i = 0; i < 4; i++) /* processes of one user */
		account_of(&flood[i], &b, i ? getuid() : 4000000002U);
	for (int i = 1; i < 4; i++)
		flood[i].owner = flood[0].owner;
	b.n_owners = 2;
	assert_int_equal(fill(&honest, &s, 3000000), 3000000);
	for (int i = 0; i < 4; i++)
		fill(&flood[i], &s, UINT64_MAX);
	assert_ended(&flood[0]);
	assert_ended(&flood[3]);
	assert_in_range(atomic_load(&flood[0].owner->used), 4498000, 4500000);
	assert_int_equal(fill(&honest, &s, 1000000), 1000000);
	assert_null(honest.end);
	fill(&honest, &s, UINT64_MAX);
	assert_ended(&honest);
	assert_in_range(nps_session_writer__bytes(&s), 8490000,
			12000000); /* the rest is for calls and the like */
	nps_log_budget__free(&b);
}

static void owners_are_distinguished(void **state)
{
	struct nps_log_account own, device, other_device, freed;
	struct nps_log_budget b;
	struct nps_session_writer s;

	(void)state;
	init(&b, &s, 1 << 30);
	assert_int_equal(nps_log_account__init(&own, &b, getpid()), 0);
	assert_int_equal(nps_log_account__init(&device, &b, 0), 0);
	assert_int_equal(nps_log_account__init(&other_device, &b, 0), 0);
	assert_int_equal(nps_log_account__init(&freed, &b, 0x7fffffff), 0);
	assert_true(own.owner != device.owner && device.owner != other_device.owner &&
		    freed.owner != own.owner);
	/* Ended accounts use nothing of those that live. */
	assert_int_equal(b.n_owners, 3);
	assert_int_equal(b.n_users, 1);
	assert_int_equal(nps_log_account__add_bytes(&freed, 1), 0);
	assert_true(nps_log_account__may_read(&freed) || freed.slowed);
	nps_log_budget__free(&b);
}

static void time_of_others_is_not_used_up(void **state)
{
	struct nps_log_account busy, other, own;
	struct nps_log_budget b;
	struct nps_session_writer s;

	(void)state;
	init(&b, &s, 1 << 30);
	account_of(&busy, &b, 4000000001U);
	account_of(&other, &b, 4000000002U);
	assert_int_equal(nps_log_account__init(&own, &b, 0), 0); /* of a thread of its own */
	usleep(1000); /* parts begin empty */
	assert_true(nps_log_account__may_read(&busy) && nps_log_account__may_read(&other));
	for (int i = 0; i < 3; i++) /* its own part first, then what is common */
		nps_log_account__add_cpu(&busy, 3600 * SECOND);
	assert_false(nps_log_account__may_read(&busy));
	assert_true(busy.slowed);
	assert_true(b.pool[NPS_LOG_CPU].common.left < 0);
	usleep(1000);
	assert_true(nps_log_account__may_read(&other));
	assert_false(other.slowed);
	assert_true(nps_log_account__may_read(&own));
	nps_log_account__add_cpu(&own, 3600 * SECOND);
	assert_false(nps_log_account__may_read(&own));
	nps_log_budget__free(&b);
}

static void directories_are_counted(void **state)
{
	struct nps_log_account a, same, other;
	struct nps_log_budget b;
	struct nps_session_writer s;

	(void)state;
	init(&b, &s, 1 << 30);
	account_of(&other, &b, 4000000001U);
	assert_int_equal(nps_log_account__init(&a, &b, getpid()), 0);
	assert_int_equal(nps_log_account__init(&same, &b, getpid()), 0);
	for (int i = 0; i < NPS_LOG_DIRECTORIES; i++)
		assert_int_equal(nps_log_account__add_directory(i % 2 ? &a : &same), 0);
	assert_int_equal(nps_log_account__add_directory(&a), -ENOBUFS);
	assert_string_equal(a.end, "devices");
	assert_null(same.end);
	assert_int_equal(nps_log_account__add_directory(&other), 0);
	nps_log_budget__free(&b);
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

/* What this thread does itself counts whole, however seldom it looks; and three times as long is the end. */
static void deadline_charges_own_work(void **state)
{
	struct nps_deadline d;
	uint64_t begin;

	(void)state;
	nps_deadline__init(&d, 3 * NPS_DEADLINE_TURN_NS);
	begin = nps_now(CLOCK_THREAD_CPUTIME_ID);
	while (nps_now(CLOCK_THREAD_CPUTIME_ID) - begin < 2 * NPS_DEADLINE_TURN_NS)
		;
	assert_true(nps_deadline__left(&d) <= NPS_DEADLINE_TURN_NS);
	nps_deadline__init(&d, NPS_DEADLINE_TURN_NS);
	d.left = UINT64_MAX;
	usleep(4 * NPS_DEADLINE_TURN_NS / 1000);
	assert_int_equal(nps_deadline__left(&d), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bucket_releases_what_accrues),
		cmocka_unit_test(bucket_holds_no_more_than_its_burst),
		cmocka_unit_test(bucket_fills_in_small_steps),
		cmocka_unit_test(one_owner_has_it_all),
		cmocka_unit_test(logs_leave_room_for_others),
		cmocka_unit_test(owners_are_distinguished),
		cmocka_unit_test(time_of_others_is_not_used_up),
		cmocka_unit_test(directories_are_counted),
		cmocka_unit_test(deadline_charges_own_work),
		cmocka_unit_test(deadline_charges_a_turn_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
