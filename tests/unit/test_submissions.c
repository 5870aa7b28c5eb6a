/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submissions of which only the beginning was recorded: when they were over, what
 * covers them, and which of them failed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "import/session/bounds.h"
#include "launches.h"

#define MS 1000000ULL

/* SQE number I of one call of the driver's. */
static void begin(uint32_t tid, uint64_t at, unsigned int type, uint16_t stream, uint16_t task)
{
	sent(tid, at, at, type, stream, task);
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

/* What the thread does next shows that the submission is over. */
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

#define OTHER (PID + 1) /* a thread */

/* When the tasks of the one stream there is had ended at the latest, by the submissions' order in time. */
static void ends(uint64_t *high, size_t n)
{
	const struct nps_sub *subs[8];
	const struct nps_task *tasks[8] = { NULL };
	struct nps_bounds bounds[8];

	assert_int_equal(model.subs.len, n);
	for (size_t i = 0; i < n; i++) {
		size_t at = i;

		for (; at && subs[at - 1]->begin > sub(i)->begin; at--)
			subs[at] = subs[at - 1];
		subs[at] = sub(i);
	}
	assert_int_equal(model.syncs.len, 1);
	nps_bounds__stream(subs, tasks, 0, NULL, n, model.syncs.data, 1, bounds);
	for (size_t i = 0; i < n; i++)
		high[i] = bounds[i].end_high;
}

/* A copy to the host returns when it is done: not so what another thread submits meanwhile. */
static void a_copy_covers_what_was_before_it(void **state)
{
	uint64_t high[3];

	(void)state;
	event(NPS_EV_API, NPS_PROBE_LAUNCH, OTHER, MS, 2 * MS, 0x100, 8, 0x77);
	begin(OTHER, MS + 1, NPS_SQE_AI_CORE, 2, 6);
	event(NPS_EV_API, NPS_PROBE_MEMCPY, PID, 3 * MS, 20 * MS, 4096, 2, 0x5000);
	begin(PID, 4 * MS, NPS_SQE_PCIE_DMA, 2, 7);
	event(NPS_EV_API, NPS_PROBE_LAUNCH, OTHER, 5 * MS, 6 * MS, 0x100, 8, 0x77);
	begin(OTHER, 5 * MS + 1, NPS_SQE_AI_CORE, 2, 8);
	build();
	ends(high, 3);
	assert_int_equal(high[0], 20 * MS);
	assert_int_equal(high[1], 20 * MS);
	assert_true(high[2] == UINT64_MAX);
}

/* Nor of an event, whose record call took long. */
static void an_event_covers_what_was_before_it(void **state)
{
	uint64_t high[2];

	(void)state;
	event(NPS_EV_API, NPS_PROBE_RECORD_EVENT, PID, 10 * MS, 20 * MS, 0xe, 0x77, 0);
	begin(PID, 11 * MS, NPS_SQE_EVENT_RECORD, 2, 7);
	event(NPS_EV_API, NPS_PROBE_LAUNCH, OTHER, 12 * MS, 13 * MS, 0x100, 8, 0x77);
	begin(OTHER, 12 * MS + 1, NPS_SQE_AI_CORE, 2, 8);
	event(NPS_EV_API, NPS_PROBE_SYNC_EVENT, OTHER, 30 * MS, 40 * MS, 0xe, 0, 0);
	build();
	ends(high, 2);
	assert_int_equal(high[0], 40 * MS);
	assert_true(high[1] == UINT64_MAX);
}

/* Waits of both sorts, each for what it covers. */
static void covers_by_end_and_by_begin(void **state)
{
	const struct nps_sub subs[] = { { .begin = 100, .end = 101 },
					{ .begin = 200, .end = 600 },
					{ .begin = 300, .end = 301 },
					{ .begin = 400, .end = 401 } };
	const struct nps_sub *s[] = { &subs[0], &subs[1], &subs[2], &subs[3] };
	const struct nps_task *t[4] = { NULL };
	const struct nps_sync syncs[] = { { .cover = 150, .done = 700 },
					  { .cover = 200, .done = 800, .by_begin = true },
					  { .cover = 350, .done = 900 } };
	struct nps_bounds b[4];

	(void)state;
	nps_bounds__stream(s, t, 0, NULL, 4, syncs, 3, b);
	assert_int_equal(b[0].end_high, 700);
	assert_int_equal(b[1].end_high, 800);
	assert_int_equal(b[2].end_high, 900);
	assert_true(b[3].end_high == UINT64_MAX);
}

static void failed_call(unsigned int probe, uint64_t start, uint64_t end, uint64_t a0, uint64_t a1)
{
	event(NPS_EV_API, probe, PID, start, end, a0, a1, 0);
	NPS_AT(&model.events, struct nps_event, model.events.len - 1).ret = 207013;
}

/* Nothing came of them: no kind of call that submits one thing leaves a task behind when it fails. */
static void failed_calls_submit_nothing(void **state)
{
	static const struct {
		unsigned int probe, type;
	} calls[] = { { NPS_PROBE_LAUNCH, NPS_SQE_AI_CORE },
		      { NPS_PROBE_MEMCPY_ASYNC, NPS_SQE_SDMA },
		      { NPS_PROBE_RECORD_EVENT, NPS_SQE_EVENT_RECORD },
		      { NPS_PROBE_WAIT_EVENT, NPS_SQE_EVENT_WAIT },
		      { NPS_PROBE_MEMSET_ASYNC, NPS_SQE_SDMA },
		      { NPS_PROBE_RECORD_NOTIFY, NPS_SQE_NOTIFY_RECORD } };
	uint64_t at = 10 * MS;

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(calls); i++, at += 10 * MS) {
		failed_call(calls[i].probe, at, at + 5 * MS, 0x100, 8);
		begin(PID, at + MS, calls[i].type, 2, i + 1);
	}
	build();
	assert_int_equal(model.subs.len, 0);
	assert_int_equal(model.losses.uncertain, 0);
}

/* The innermost that submits decides: a copy of arguments is there though the launch around it fails. */
static void the_innermost_call_decides(void **state)
{
	(void)state;
	failed_call(NPS_PROBE_LAUNCH, 10 * MS, 20 * MS, 0x100, 8);
	event(NPS_EV_API, NPS_PROBE_MEMCPY_ASYNC, PID, 11 * MS, 13 * MS, 64, 1, 0);
	begin(PID, 12 * MS, NPS_SQE_SDMA, 2, 7);
	begin(PID, 15 * MS, NPS_SQE_AI_CORE, 2, 8);
	/* and what fails without having anything to submit shows nothing */
	event(NPS_EV_API, NPS_PROBE_LAUNCH, PID, 30 * MS, 40 * MS, 0x100, 8, 0);
	failed_call(NPS_PROBE_GET_MEM_INFO, 31 * MS, 35 * MS, 0, 0);
	begin(PID, 32 * MS, NPS_SQE_AI_CORE, 2, 9);
	build();
	assert_int_equal(model.subs.len, 2);
	assert_int_equal(sub(0)->task, 7);
	assert_int_equal(sub(1)->task, 9);
}

/*
 * Which of a collective's tasks have reached the device, or that of a copy whose wait
 * fails, nobody reports: they stay, counted.
 */
static void some_are_uncertain(void **state)
{
	(void)state;
	failed_call(NPS_PROBE_HCCL_ALL_REDUCE, 10 * MS, 20 * MS, 0, 0);
	begin(PID, 11 * MS, NPS_SQE_SDMA, 2, 7);
	begin(PID, 12 * MS, NPS_SQE_SDMA, 2, 7); /* once more */
	begin(PID, 13 * MS, NPS_SQE_NOTIFY_WAIT, 2, 8);
	failed_call(NPS_PROBE_MEMCPY, 30 * MS, 40 * MS, 4096, 2);
	begin(PID, 31 * MS, NPS_SQE_PCIE_DMA, 2, 9);
	event(NPS_EV_API, NPS_PROBE_HCCL_ALL_REDUCE, PID, 50 * MS, 60 * MS, 0, 0, 0);
	begin(PID, 51 * MS, NPS_SQE_SDMA, 2, 10);
	build();
	assert_int_equal(model.subs.len, 4);
	assert_int_equal(model.losses.uncertain, 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_last_try_counts),
		TEST(the_next_call_ends_it),
		TEST(a_copy_covers_what_was_before_it),
		TEST(an_event_covers_what_was_before_it),
		TEST(covers_by_end_and_by_begin),
		TEST(failed_calls_submit_nothing),
		TEST(the_innermost_call_decides),
		TEST(some_are_uncertain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
