/* SPDX-License-Identifier: BSD-2-Clause */
/* Submissions of which only the beginning was recorded: when they were over, what covers them, and which of them failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launches.h"

#define MS 1000000ULL

/* SQE number I of one call of the driver's. */
static void begin(uint32_t tid, uint64_t at, unsigned int type, uint16_t stream, uint64_t task)
{
	event(NPS_EV_SQE, NPS_PROBE_SQ_TASK_SEND, tid, at, at, 1ULL << 32,
	      type | 8 << 16 | (uint64_t)stream << 32 | task << 48, 0);
}

static const struct nps_sub *sub(size_t i)
{
	return &NPS_AT(&model.subs, struct nps_sub, i);
}

/* Refused twice: it can have been taken when the last one returned, not before. */
static void the_last_try_counts(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_LAUNCH, PID, 10 * MS, 20 * MS, 0x100, 8, 0x77);
	for (unsigned int i = 0; i < 3; i++) {
		begin(PID, (11 + i) * MS, NPS_SQE_AI_CORE, 2, 7);
		begin(PID, (11 + i) * MS, NPS_SQE_AI_CORE, 2, 8);
	}
	build();
	assert_int_equal(model.subs.len, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(sub(i)->begin, 11 * MS);
		assert_int_equal(sub(i)->end, 20 * MS);
	}
}

/* What the thread does next tells that the submission is over. */
static void the_next_call_ends_it(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_LAUNCH, PID, 10 * MS, 20 * MS, 0x100, 8, 0x77);
	begin(PID, 11 * MS, NPS_SQE_AI_CORE, 2, 7);
	begin(PID, 12 * MS, NPS_SQE_AI_CORE, 2, 7);
	event(NPS_EV_API, NPS_PROBE_GET_MEM_INFO, PID, 15 * MS, 16 * MS, 0, 0, 0);
	begin(PID, 17 * MS, NPS_SQE_AI_CORE, 2, 8);
	build();
	assert_int_equal(model.subs.len, 2);
	assert_int_equal(sub(0)->end, 15 * MS);
	assert_int_equal(sub(1)->end, 20 * MS);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_last_try_counts),
		TEST(the_next_call_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
