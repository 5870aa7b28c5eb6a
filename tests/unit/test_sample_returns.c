/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of BPF find the samples that they belong to, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sources/stacks/sample_returns.h"

#define CPUS 2

static int begin(void **state)
{
	*state = nps_sample_returns__new(CPUS);
	return *state ? 0 : -1;
}

static int end(void **state)
{
	nps_sample_returns__free(*state);
	return 0;
}

static size_t bytes(unsigned int returns)
{
	return offsetof(struct nps_sample_returns, pending.returns) + returns * sizeof(struct nps_return);
}

/* One of a thread whose number is its CPU's and 100, with one return, from a block of its very size. */
static int add(struct nps_sample_returns_queue *q, uint32_t cpu, uint64_t time, bool exact, uint64_t ip)
{
	struct nps_sample_returns m = {
		.message = NPS_MSG_RETURNS,
		.tid = 100 + cpu,
		.cpu = cpu,
		.time = time,
		.exact = exact,
		.user = { ip },
		.pending = { .n = 1, .n_user = ip != 0, .returns = { { .stack = time, .address = 7 } } }
	};
	void *block = malloc(bytes(1));
	int err;

	assert_non_null(block);
	memcpy(block, &m, bytes(1));
	err = nps_sample_returns__add(q, block, bytes(1));
	free(block);
	return err;
}

static uint64_t next_returns(struct nps_sample_returns_queue *q, uint32_t cpu, uint64_t time, uint64_t ip)
{
	const struct nps_sample_returns *m = nps_sample_returns__next(q, cpu, 100 + cpu, time, ip);

	return m ? m->pending.returns[0].stack : 0;
}

/* Kernels from 6.3 on record a sample's time. */
static void by_the_same_time(void **state)
{
	assert_int_equal(add(*state, 0, 50, true, 0), 0);
	assert_int_equal(add(*state, 1, 51, true, 0), 0);
	assert_int_equal(add(*state, 0, 60, true, 0), 0);
	assert_int_equal(next_returns(*state, 0, 50, 0), 50);
	assert_int_equal(next_returns(*state, 0, 55, 0), 0);
	assert_int_equal(next_returns(*state, 0, 60, 0), 60);
	assert_int_equal(next_returns(*state, 0, 60, 0), 0);
	assert_int_equal(next_returns(*state, 1, 51, 0), 51);
}

/* Others only that it was a little before. */
static void by_order(void **state)
{
	assert_int_equal(add(*state, 0, 50, false, 5), 0);
	assert_int_equal(add(*state, 0, 60, false, 6), 0);
	assert_int_equal(add(*state, 0, 70, false, 7), 0);
	assert_int_equal(next_returns(*state, 0, 52, 5), 50);
	assert_int_equal(next_returns(*state, 0, 71, 7), 70); /* the sample of the one before was lost */
	assert_int_equal(add(*state, 0, 80, false, 8), 0);
	assert_int_equal(next_returns(*state, 0, 91, 9), 0); /* its own was lost, this one had none */
	assert_int_equal(next_returns(*state, 0, 92, 8), 0);
}

static void of_its_thread_alone(void **state)
{
	assert_int_equal(add(*state, 0, 50, true, 0), 0);
	assert_null(nps_sample_returns__next(*state, 0, 99, 50, 0));
	assert_null(nps_sample_returns__next(*state, CPUS, 100, 50, 0));
}

static void samples_that_never_come(void **state)
{
	int err = 0;

	for (uint64_t time = 1; time <= 5000; time++)
		err = add(*state, 0, time, true, 0);
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(next_returns(*state, 0, 1, 0), 0);
	assert_int_equal(next_returns(*state, 0, 5000, 0), 5000);
}

static void what_is_none(void **state)
{
	struct nps_sample_returns m = { .message = NPS_MSG_RETURNS, .pending = { .n = 1 } };

	assert_int_equal(nps_sample_returns__add(*state, &m, bytes(0)), -EINVAL);
	assert_int_equal(nps_sample_returns__add(*state, &m, bytes(0) - 1), -EINVAL);
	m.cpu = CPUS;
	assert_int_equal(nps_sample_returns__add(*state, &m, bytes(1)), -EINVAL);
	m.cpu = 0;
	m.pending.n_user = NPS_STACK_USER + 1;
	assert_int_equal(nps_sample_returns__add(*state, &m, bytes(1)), -EINVAL);
	m.pending.n_user = 0;
	m.pending.n = NPS_STACK_RETURNS + 1;
	assert_int_equal(nps_sample_returns__add(*state, &m, sizeof(m)), -EINVAL);
	m.pending.n = 1;
	m.message = NPS_MSG_SLEEP;
	assert_int_equal(nps_sample_returns__add(*state, &m, bytes(1)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_the_same_time, begin, end),
		cmocka_unit_test_setup_teardown(by_order, begin, end),
		cmocka_unit_test_setup_teardown(of_its_thread_alone, begin, end),
		cmocka_unit_test_setup_teardown(samples_that_never_come, begin, end),
		cmocka_unit_test_setup_teardown(what_is_none, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
