/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of a task log is missing, as its tasks show: two streams of one
 * device, a task of each every microsecond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "import/session/log_losses.h"

#define TASKS 40000 /* of a stream */
#define ROUND 65536 /* records */
#define NS(i) (1000 + (uint64_t)(i)*1000)

static struct nps_session rec;
static struct nps_key keys[2 * TASKS];
static const struct nps_streams streams = { keys, 2 * TASKS };
static struct nps_vec rows, counts, match;
static struct nps_device_log *device;

static int setup(void **state)
{
	(void)state;
	nps_session__init(&rec, AT_FDCWD, AT_FDCWD);
	assert_non_null(nps_session__proc(&rec, 50));
	rec.end = UINT64_MAX;
	device = nps_session__log(&rec, 0, 0);
	assert_non_null(device);
	device->record_bytes = 64;
	nps_vec__init(&rows, AT_FDCWD, sizeof(struct nps_log_task));
	nps_vec__init(&counts, AT_FDCWD, sizeof(struct nps_counts));
	nps_vec__init(&match, AT_FDCWD, sizeof(uint32_t));
	for (uint32_t i = 0; i < 2 * TASKS; i++) {
		struct nps_sub *sub = nps_vec__push(&rec.subs);

		assert_non_null(sub);
		*sub = (struct nps_sub){ .begin = NS(i % TASKS),
					 .end = NS(i % TASKS) + 1,
					 .comm = NPS_NONE,
					 .stream = i / TASKS,
					 .task_row = NPS_NONE };
		keys[i] = (struct nps_key){ .key = sub->begin, .row = i, .group = i / TASKS };
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nps_vec__free(&rows);
	nps_vec__free(&counts);
	nps_vec__free(&match);
	nps_session__free(&rec);
	return 0;
}

/* Task I of STREAM ran, 500 ns after it was submitted. */
static struct nps_log_task *ran(uint32_t stream, uint32_t i)
{
	struct nps_log_task *row = nps_vec__push(&rows);
	struct nps_counts *count = nps_vec__push(&counts);
	uint32_t *of = nps_vec__push(&match);

	assert_true(row && count && of);
	*of = stream * TASKS + i;
	NPS_AT(&rec.subs, struct nps_sub, *of).task_row = rows.len - 1;
	*row = (struct nps_log_task){ .start = NS(i) + 500,
				      .end = NS(i) + 700,
				      .stream = stream,
				      .pmu = NPS_NONE,
				      .core = NPS_SQE_AI_CORE };
	*count = (struct nps_counts){ row->start, row->end };
	device->task_records += 2;
	return row;
}

/* All of STREAM but [FROM, TO). */
static void ran_but(uint32_t stream, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < TASKS; i++)
		if (i < from || i >= to)
			ran(stream, i);
}

static void count_losses(void)
{
	assert_int_equal(nps_log_losses__count(&rec, &streams, &rows, &counts, match.data), 0);
}

static void nothing_is_missing(void **state)
{
	(void)state;
	ran_but(0, 0, 0);
	ran_but(1, 0, 0);
	count_losses();
	assert_int_equal(device->lost, 0);
	assert_int_equal(device->rounds, 0);
}

/* 16384 tasks of each stream are a ring, and a few were queued when it began. */
static void a_silence_is_a_round(void **state)
{
	(void)state;
	ran_but(0, 10000, 26384);
	ran_but(1, 10100, 26484);
	count_losses();
	assert_int_equal(device->rounds, 1);
	assert_int_equal(device->lost, ROUND);
	assert_int_equal(rec.losses.device_records, ROUND);
}

static void a_round_and_some_records(void **state)
{
	(void)state;
	ran_but(0, 10000, 26384);
	ran_but(1, 10000, 26384);
	/* 20 records before it, of 10 tasks */
	for (uint32_t i = 0; i < 10; i++)
		NPS_AT(&rec.subs, struct nps_sub, 5000 + 2 * i).task_row = NPS_NONE;
	device->gaps = device->task_gaps = 20 % 16;
	count_losses();
	assert_int_equal(device->rounds, 1);
	assert_int_equal(device->lost, ROUND + 20);
}

/* A stream alone, while the other one has its tasks, or too few for a ring. */
static void tasks_that_never_ran_are_no_round(void **state)
{
	(void)state;
	ran_but(0, 10000, 36000);
	ran_but(1, 0, 0);
	count_losses();
	assert_int_equal(device->rounds, 0);
	assert_int_equal(device->lost, 0);
}

static void a_freed_queue_is_no_round(void **state)
{
	(void)state;
	ran_but(0, 10000, 12048);
	ran_but(1, 9990, 12050);
	count_losses();
	assert_int_equal(device->lost, 0);
}

static void what_the_collector_did_not_read_is_no_loss(void **state)
{
	uint64_t *at = nps_vec__push(&device->task_breaks);

	(void)state;
	assert_non_null(at);
	*at = NS(26384) + 500;
	ran_but(0, 10000, 26384);
	ran_but(1, 10000, 26384);
	count_losses();
	assert_int_equal(device->lost, 0);
}

/* Tasks have nine records each: fewer of them are a round. */
static void sub_tasks_have_records_too(void **state)
{
	(void)state;
	ran_but(0, 10000, 13641);
	ran_but(1, 10000, 13641);
	device->task_records = 9 * rows.len;
	count_losses();
	assert_int_equal(device->rounds, 1);
}

static void counters(struct nps_log_task *row, uint8_t main)
{
	struct nps_run_pmu *pmu = nps_vec__push(&rec.run_pmus);

	assert_non_null(pmu);
	*pmu = (struct nps_run_pmu){ .main = main };
	row->pmu = rec.run_pmus.len - 1;
}

/*
 * 1 to 9: 4 and 5 have none, 6 has less than all, 7 is a collective's, 1
 * was before the counters, 9 after them.
 */
static void kernels_without_counters(void **state)
{
	static const uint8_t has[] = { 0, 0, 1, 1, 0, 0, 1, 0, 1, 0 };

	(void)state;
	for (uint32_t i = 1; i < 10; i++) {
		struct nps_log_task *row = ran(0, i);

		if (has[i])
			counters(row, i == 6 ? 2 : 0);
	}
	NPS_AT(&rec.subs, struct nps_sub, 7).comm = 0;
	count_losses();
	assert_int_equal(device->uncounted, 3);
	assert_int_equal(NPS_AT(&rows, struct nps_log_task, 5).pmu, NPS_NONE);
}

static void a_context_without_counters(void **state)
{
	struct nps_log_task *row;

	(void)state;
	counters(ran(0, 1), 0);
	row = ran(0, 2);
	counters(row, 0);
	row->sub_pmu = row->sub_uncounted = row->has_subs = true;
	row->core_subs = 2;
	counters(ran(0, 3), 0);
	count_losses();
	assert_int_equal(device->uncounted, 1);
	assert_int_equal(NPS_AT(&rows, struct nps_log_task, 1).pmu, NPS_NONE);
}

/* The channel of the counters was opened anew, after that of the tasks. */
static void counters_after_a_break(void **state)
{
	uint64_t *at = nps_vec__push(&device->pmu_breaks);

	(void)state;
	assert_non_null(at);
	*at = NS(4) + 500;
	counters(ran(0, 1), 0);
	for (uint32_t i = 4; i < 8; i++)
		ran(0, i);
	counters(ran(0, 8), 0);
	count_losses();
	assert_int_equal(device->uncounted, 0);
}

/* It was running when they began; one that begins later is missed. */
static void a_kernel_from_before_the_counters(void **state)
{
	(void)state;
	ran(1, 1);
	NPS_AT(&rows, struct nps_log_task, 0).end = NS(6);
	NPS_AT(&counts, struct nps_counts, 0).end = NS(6);
	counters(ran(0, 2), 0);
	ran(0, 3);
	counters(ran(0, 8), 0);
	count_losses();
	assert_int_equal(device->uncounted, 1);
}

/* Of two sub-tasks on cores one's counters were recorded as the whole's; a graph of copies has none. */
static void graphs(void **state)
{
	struct nps_log_task *row;

	(void)state;
	counters(ran(0, 1), 0);
	row = ran(0, 2);
	counters(row, 0);
	row->has_subs = true;
	row->core_subs = 2;
	ran(0, 3)->has_subs = true;
	counters(ran(0, 4), 0);
	count_losses();
	assert_int_equal(device->uncounted, 1);
}

/* Behind a task that ran on. */
static void a_hang_is_no_round(void **state)
{
	(void)state;
	ran_but(0, 10000, 26384);
	ran_but(1, 10000, 26384);
	for (size_t i = 0; i < rows.len; i++)
		if (NPS_AT(&rows, struct nps_log_task, i).start == NS(9999) + 500)
			NPS_AT(&rows, struct nps_log_task, i).end = NS(26383);
	count_losses();
	assert_int_equal(device->rounds, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_missing),
		TEST(a_silence_is_a_round),
		TEST(a_round_and_some_records),
		TEST(tasks_that_never_ran_are_no_round),
		TEST(a_freed_queue_is_no_round),
		TEST(what_the_collector_did_not_read_is_no_loss),
		TEST(sub_tasks_have_records_too),
		TEST(kernels_without_counters),
		TEST(a_context_without_counters),
		TEST(counters_after_a_break),
		TEST(a_kernel_from_before_the_counters),
		TEST(graphs),
		TEST(a_hang_is_no_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
