/* SPDX-License-Identifier: BSD-2-Clause */
/* Which thread planned what another one launched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "launches.h"

static void planned_phase_1(uint32_t tid, uint64_t at, const char *name, const char *l0, uint64_t executor)
{
	mark(NPS_PROBE_NN_PHASE1, tid, at + 1, text(name), 0x99);
	mark(NPS_PROBE_NN_L0, tid, at + 2, text(l0), executor);
}

static void run(uint32_t tid, uint64_t at, const char *name, uint64_t executor)
{
	mark(NPS_PROBE_NN_PHASE2, tid, at, text(name), executor);
	launch(tid, at + 5, 0xf1, 0);
}

/* When and where the launch of SUB was planned, if another thread did; else 0. */
static uint64_t planned_at(size_t sub, uint32_t *tid)
{
	const struct nps_vec *planned = &model.procs[0].planned;

	*tid = 0;
	for (size_t i = 0; i < planned->len; i++) {
		const struct nps_planned_call *call = &NPS_AT(planned, struct nps_planned_call, i);

		if (call->cann != NPS_AT(&model.subs, struct nps_sub, sub).cann)
			continue;
		*tid = call->planner.tid;
		return call->planner.time;
	}
	return 0;
}

/* Another thread launches what first phases planned, or the cache of executors returned. */
static void launches_of_another_thread(void **state)
{
	uint32_t tid;

	(void)state;
	planned_phase_1(1, 20, "aclnnMul", "Mul", 0xe1);
	planned_phase_1(3, 40, "aclnnMul", "Mul", 0xe2);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 50, 51, 0x4e4, 0, 0);
	planned_phase_1(1, 60, "aclnnAdd", "Add", 0xe3);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 70, 71, 0x4e4, 0, 0xe4);
	run(2, 100, "aclnnMul", 0xe1);
	run(2, 200, "aclnnMul", 0xe2);
	run(2, 300, "aclnnAdd", 0xe3);
	run(2, 400, "aclnnAdd", 0xe4);
	run(2, 500, "aclnnAdd", 0xe4); /* of an executor that is used again without a query */
	run(2, 600, "aclnnSub", 0xe5); /* planned before the capture */
	planned_phase_1(1, 700, "aclnnMul", "Mul", 0xe6);
	run(1, 800, "aclnnMul", 0xe6);
	build();
	assert_int_equal(model.subs.len, 7);
	assert_int_equal(planned_at(0, &tid), 0); /* thread 1 launched it */
	assert_int_equal(planned_at(1, &tid), 21);
	assert_int_equal(tid, 1);
	assert_int_equal(planned_at(2, &tid), 41);
	assert_int_equal(tid, 3);
	assert_int_equal(planned_at(3, &tid), 61);
	assert_int_equal(planned_at(4, &tid), 70);
	assert_int_equal(planned_at(5, &tid), 0);
	assert_int_equal(planned_at(6, &tid), 0);
}

/* A repeatable executor has one first phase, and who runs it again is not known. */
static void repeatable_launches_of_another_thread(void **state)
{
	uint32_t tid;

	(void)state;
	planned_phase_1(1, 20, "aclnnMul", "Mul", 0xe1);
	event(NPS_EV_API, NPS_PROBE_NN_REPEATABLE, 1, 30, 31, 0xe1, 0, 0);
	run(2, 100, "aclnnMul", 0xe1);
	run(2, 200, "aclnnMul", 0xe1);
	build();
	assert_int_equal(planned_at(0, &tid), 21);
	assert_int_equal(planned_at(1, &tid), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(launches_of_another_thread),
		TEST(repeatable_launches_of_another_thread),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
