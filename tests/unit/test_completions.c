/* SPDX-License-Identifier: BSD-2-Clause */
/* CQEs as upper bounds of what was submitted, and as the device's time of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "event.h"
#include "import/session/completions.h"

#include "import/cann/control.h"

#define DEVICE 1
#define STREAM 7
#define FAILED 0x8000

static const struct {
	uint64_t begin, end;
	uint16_t stream, task;
} submissions[] = {
	{ 100, 110, STREAM, 10 },     { 120, 130, STREAM, 11 }, /* two of one call */
	{ 120, 130, STREAM, 12 },     { 300, 310, STREAM, 10 }, /* the number once more */
	{ 200, 210, STREAM + 1, 10 },
};
#define SUBMISSIONS 5

static struct nps_session rec;
static struct nps_key keys[SUBMISSIONS];
static const struct nps_streams streams = { keys, SUBMISSIONS };

static int setup(void **state)
{
	(void)state;
	nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
	assert_non_null(nps_session__proc(&rec, 50));
	for (uint32_t i = 0; i < SUBMISSIONS; i++) {
		struct nps_sub *sub = nps_vec__push(&rec.subs);

		assert_non_null(sub);
		*sub = (struct nps_sub){ .begin = submissions[i].begin,
					 .end = submissions[i].end,
					 .device = DEVICE,
					 .stream = submissions[i].stream,
					 .task = submissions[i].task };
		keys[i] = (struct nps_key){ .key = sub->begin,
					    .row = i,
					    .group = submissions[i].stream - STREAM };
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nps_session__free(&rec);
	return 0;
}

static void cqe(uint64_t time, uint16_t device, uint16_t stream, uint16_t task, uint16_t flags)
{
	struct nps_event *ev = nps_vec__push(&rec.procs[0].drivers);

	assert_non_null(ev);
	*ev = (struct nps_event){
		.kind = NPS_EV_DRIVER_DONE,
		.start = time,
		.driver_done = { .device = device, .flags = flags, .stream = stream, .task = task }
	};
}

static void add(size_t expected)
{
	assert_int_equal(nps_completions__add(&rec, &streams), 0);
	assert_int_equal(rec.syncs.len, expected);
}

static void expect(size_t row, uint64_t cover, uint64_t done, uint16_t stream)
{
	const struct nps_sync *sync = &NPS_AT(&rec.syncs, struct nps_sync, row);

	assert_int_equal(sync->cover, cover);
	assert_int_equal(sync->done, done);
	assert_int_equal(sync->device, DEVICE);
	assert_int_equal(sync->stream, stream);
}

static void a_cqe_covers_its_task_and_those_before(void **state)
{
	(void)state;
	cqe(200, DEVICE, STREAM, 12, 0);
	cqe(250, DEVICE, (STREAM + 1) | 0x8000, 10, 4); /* one that somebody waits for */
	add(2);
	expect(0, 130, 200, STREAM);
	expect(1, 210, 250, STREAM + 1);
}

static void what_was_submitted_with_it_is_not_covered(void **state)
{
	(void)state;
	cqe(200, DEVICE, STREAM, 11, 0);
	add(1);
	expect(0, 119, 200, STREAM);
}

static void a_number_is_that_of_the_latest(void **state)
{
	(void)state;
	cqe(250, DEVICE, STREAM, 10, 0);
	cqe(400, DEVICE, STREAM, 10, 0);
	add(2);
	expect(0, 110, 250, STREAM);
	expect(1, 310, 400, STREAM);
}

static void two_calls_at_a_time_complete_nothing(void **state)
{
	(void)state;
	NPS_AT(&rec.subs, struct nps_sub, 0).end = 125;
	cqe(200, DEVICE, STREAM, 11, 0);
	add(0);
}

static void of_calls_at_a_time_further_apart_neither(void **state)
{
	(void)state;
	NPS_AT(&rec.subs, struct nps_sub, 0).end = 125;
	cqe(200, DEVICE, STREAM, 12, 0); /* the second of its call */
	cqe(400, DEVICE, STREAM, 10, 0);
	add(1);
	expect(0, 310, 400, STREAM);
	rec.procs[0].drivers.len = rec.syncs.len = 0;
	NPS_AT(&rec.subs, struct nps_sub, 0).end = 305; /* those between ended before */
	cqe(400, DEVICE, STREAM, 10, 0);
	add(0);
}

static void calls_that_began_together_are_several(void **state)
{
	(void)state;
	NPS_AT(&rec.subs, struct nps_sub, 2).end = 135;
	cqe(200, DEVICE, STREAM, 12, 0);
	add(0);
}

static void foreign_calls_cover_nothing(void **state)
{
	(void)state;
	cqe(50, DEVICE, STREAM, 10, 0); /* before it was submitted */
	cqe(400, DEVICE, STREAM, 99, 0);
	cqe(400, DEVICE, STREAM + 2, 10, 0);
	cqe(400, DEVICE + 1, STREAM, 10, 0);
	cqe(400, UINT16_MAX, STREAM, 10, 0);
	cqe(400, DEVICE, STREAM, 10, FAILED);
	add(0);
}

static void numbers_of_32_bits_are_none_of_its(void **state)
{
	(void)state;
	rec.devices[DEVICE].has_platform = true;
	rec.devices[DEVICE].platform = NPS_CHIP_950;
	cqe(400, DEVICE, STREAM, 10, 0);
	add(0);
}

/* One that the runtime collected, in a call from TIME - 5 to TIME. */
static void collected(uint64_t time, uint16_t task, uint8_t type, uint16_t flags, uint64_t counter)
{
	const struct nps_event ev = { .kind = NPS_EV_CQE,
				      .start = time - 5,
				      .dur = 5,
				      .cqe = { .device = DEVICE,
					       .index = 3,
					       .count = 4,
					       .stream = STREAM,
					       .task = task,
					       .sqe_type = type,
					       .queue = 9,
					       .flags = flags,
					       .counter = counter } };

	assert_int_equal(nps_completions__keep(&rec, 0, &ev), 0);
}

static void runs_on(uint32_t chip)
{
	rec.devices[DEVICE].has_platform = true;
	rec.devices[DEVICE].platform = chip;
	rec.devices[DEVICE].freq_khz = 48000;
}

static void is_event(size_t sub)
{
	NPS_AT(&rec.subs, struct nps_sub, sub).sqe_type = NPS_SQE_EVENT_RECORD;
}

static void a_collected_one_does_too(void **state)
{
	(void)state;
	runs_on(NPS_CHIP_910B);
	collected(280, 12, NPS_SQE_AI_CORE, NPS_CQE_MATCH,
		  77); /* an event with a time has an index in a queue */
	add(1);
	expect(0, 130, 280, STREAM);
	assert_int_equal(rec.timings.len, 0);
}

static void events_have_the_devices_time(void **state)
{
	const struct nps_timing *timing;

	(void)state;
	runs_on(NPS_CHIP_910B);
	is_event(0);
	is_event(2);
	/* in another order than they were collected in */
	collected(280, 12, NPS_SQE_EVENT_RECORD, 0, 480000000001);
	collected(270, 10, NPS_SQE_EVENT_RECORD, 0, 480000000000);
	add(2);
	expect(0, 110, 270, STREAM);
	expect(1, 130, 280, STREAM);
	assert_int_equal(rec.timings.len, 2);
	timing = rec.timings.data;
	assert_int_equal(timing[0].kind, NPS_TIMING_AT);
	assert_int_equal(timing[0].to.first, 0);
	assert_int_equal(timing[0].to.last, 0);
	assert_int_equal(timing[0].device, DEVICE);
	assert_int_equal(timing[0].at, 10000000000000);
	assert_int_equal(timing[1].at, 10000000000020); /* a tick is 20.83 ns */
	assert_true(timing[1].error > 20.8 && timing[1].error < 22);
	assert_int_equal(timing[1].to.last, 2);
}

static void others_complete_nothing(void **state)
{
	const struct nps_event failed = { .kind = NPS_EV_CQE,
					  .ret = 16,
					  .cqe = { .device = DEVICE, .stream = STREAM, .task = 12 } };
	const struct nps_event unread = { .kind = NPS_EV_CQE,
					  .flags = NPS_F_SLOT_FAULT(1),
					  .cqe = { .device = DEVICE, .stream = STREAM, .task = 12 } };
	const struct nps_event far = { .kind = NPS_EV_CQE,
				       .cqe = { .device = 65535, .stream = STREAM, .task = 12 } };

	(void)state;
	runs_on(NPS_CHIP_910B);
	assert_int_equal(nps_completions__keep(&rec, 0, &failed), 0);
	assert_int_equal(nps_completions__keep(&rec, 0, &unread), 0);
	assert_int_equal(nps_completions__keep(&rec, 0, &far), 0);
	collected(280, 12, NPS_SQE_AI_CORE, NPS_CQE_DROP, 0);
	collected(280, 12, NPS_SQE_AI_CORE, NPS_CQE_ERROR, 0);
	collected(280, 12, NPS_SQE_AI_CORE, NPS_CQE_ACC_ERROR, 0);
	assert_int_equal(rec.cqes.len, 0);
	collected(280, 12, NPS_SQE_EVENT_RECORD, 0, 480000000000); /* it is a kernel */
	collected(115, 12, NPS_SQE_AI_CORE, 0, 0); /* before it was submitted */
	add(0);
	assert_int_equal(rec.timings.len, 0);
}

static void other_chips_write_other_records(void **state)
{
	static const uint32_t chips[] = { NPS_CHIP_910A, NPS_CHIP_310P, NPS_CHIP_950, NPS_CHIP_950_1 };

	(void)state;
	collected(280, 12, NPS_SQE_AI_CORE, 0, 0);
	add(0); /* it is not known which it is */
	for (size_t i = 0; i < NPS_ARRAY_SIZE(chips); i++) {
		runs_on(chips[i]);
		add(0);
	}
	runs_on(NPS_CHIP_910B);
	add(1);
}

/* Task 10 comes twice; with a record that was collected late it is not known which of them it was of. */
static void a_repeated_number_is_ignored(void **state)
{
	(void)state;
	runs_on(NPS_CHIP_910B);
	collected(400, 10, NPS_SQE_AI_CORE, 0, 0);
	add(0);
}

static void the_order_of_records_distinguishes_them(void **state)
{
	(void)state;
	runs_on(NPS_CHIP_910B);
	collected(270, 10, NPS_SQE_AI_CORE, 0, 0);
	collected(400, 10, NPS_SQE_AI_CORE, 0, 0);
	add(2);
	expect(0, 110, 270, STREAM);
	expect(1, 310, 400, STREAM);
	rec.syncs.len = rec.cqes.len = 0;
	is_event(0); /* of another type: it has records of its own */
	collected(400, 10, NPS_SQE_AI_CORE, 0, 0);
	add(1);
	expect(0, 310, 400, STREAM);
}

static void the_order_of_records_does_not_go_back(void **state)
{
	(void)state;
	runs_on(NPS_CHIP_910B);
	is_event(1);
	is_event(3);
	collected(280, 12, NPS_SQE_AI_CORE, 0, 0);
	collected(290, 11, NPS_SQE_EVENT_RECORD, 0, 480000000000); /* it may be one of before the capture */
	collected(400, 10, NPS_SQE_EVENT_RECORD, 0, 480000000001);
	add(2);
	expect(0, 130, 280, STREAM);
	expect(1, 310, 400, STREAM);
	assert_int_equal(rec.timings.len, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_cqe_covers_its_task_and_those_before, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_submitted_with_it_is_not_covered, setup, teardown),
		cmocka_unit_test_setup_teardown(a_number_is_that_of_the_latest, setup, teardown),
		cmocka_unit_test_setup_teardown(two_calls_at_a_time_complete_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(of_calls_at_a_time_further_apart_neither, setup, teardown),
		cmocka_unit_test_setup_teardown(calls_that_began_together_are_several, setup, teardown),
		cmocka_unit_test_setup_teardown(foreign_calls_cover_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_of_32_bits_are_none_of_its, setup, teardown),
		cmocka_unit_test_setup_teardown(a_collected_one_does_too, setup, teardown),
		cmocka_unit_test_setup_teardown(events_have_the_devices_time, setup, teardown),
		cmocka_unit_test_setup_teardown(others_complete_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(other_chips_write_other_records, setup, teardown),
		cmocka_unit_test_setup_teardown(a_repeated_number_is_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(the_order_of_records_distinguishes_them, setup, teardown),
		cmocka_unit_test_setup_teardown(the_order_of_records_does_not_go_back, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
