/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of torch_npu's allocator in a session: pairs, owners, and numbers that make no sense. */
#include "import/session/torch_memory.h"

#include "import/common/torch_rows.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define PID 40
#define T0 1000000000ULL /* of CLOCK_MONOTONIC, ns: the capture begins */
#define REAL0 1700000000000000000ULL

static struct nps_session rec; /* too large for the stack */
static struct nps_model model;
static struct nps_proc *proc;
static int tmpfd;

static int set_up(void **state)
{
	(void)state;
	tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	nps_session__init(&rec, tmpfd, tmpfd);
	rec.begin = T0;
	rec.begin_real = REAL0;
	proc = nps_session__proc(&rec, PID);
	return !proc || nps_model__init(&model, tmpfd, &rec.strings);
}

static int tear_down(void **state)
{
	(void)state;
	nps_model__free(&model);
	nps_session__free(&rec);
	return close(tmpfd);
}

/* TOTAL: what is allocated after it; twice as much is reserved, and one byte more is active. */
static struct nps_event *report(uint64_t at, uint32_t tid, uint8_t what, uint64_t address, int64_t size,
				int64_t total)
{
	int64_t numbers[4] = { size, total, 2 * total, total + 1 };
	struct nps_event ev = { .kind = NPS_EV_MEMORY,
				.probe = NPS_PROBE_TORCH_MEMORY,
				.pid = PID,
				.tid = tid,
				.start = T0 + at,
				.address = address,
				.memory_head = { .device = 1, .what = what },
				.memory.stream = 0x5000 };

	for (int i = 0; i < 4; i++) {
		ev.memory.low[i] = (uint32_t)numbers[i];
		ev.memory.high[i] = (int16_t)(numbers[i] >> 32);
	}
	assert_int_equal(nps_event__keep(&proc->allocator, &ev), 0);
	return &NPS_AT(&proc->allocator, struct nps_event, proc->allocator.len - 1);
}

static void operator_add(uint32_t tid, uint64_t start, uint64_t end, const char *name)
{
	size_t row;

	assert_int_equal(nps_torch_rows__add(&model, REAL0 + start, REAL0 + end, nps_proc__gtid(proc, tid),
					     nps_strings__addz(&rec.strings, name), NPS_API_TORCH_OP, &row),
			 0);
}

static void fill(size_t records, size_t allocations)
{
	assert_int_equal(nps_session_memory__fill(&model, &rec, proc), 0);
	assert_int_equal(model.memory_record.t.len, records);
	assert_int_equal(model.op_memory.t.len, allocations);
}

static void is_block(size_t row, uint64_t begin, int64_t release, int64_t active_release, int64_t size)
{
	const struct nps_op_memory_table *t = &model.op_memory;

	assert_int_equal(t->allocation[row], REAL0 + begin);
	assert_int_equal(t->size[row], size);
	assert_int_equal(t->release[row], release < 0 ? NPS_NULL : (int64_t)REAL0 + release);
	assert_int_equal(t->duration[row], release < 0 ? NPS_NULL : release - (int64_t)begin);
	assert_int_equal(t->active_release[row],
			 active_release < 0 ? NPS_NULL : (int64_t)REAL0 + active_release);
	assert_int_equal(t->active_duration[row],
			 active_release < 0 ? NPS_NULL : active_release - (int64_t)begin);
}

/* Records of several CPUs come in any order; an address is used again; ends before the capture, and after. */
static void pairs(void **state)
{
	const struct nps_op_memory_table *t = &model.op_memory;

	(void)state;
	report(50, 1, NPS_MEMORY_MALLOC, 0xa, 300, 300);
	report(10, 1, NPS_MEMORY_MALLOC, 0xa, 100, 100);
	report(20, 2, NPS_MEMORY_FREE, 0xa, -100, 0);
	report(30, 2, NPS_MEMORY_BLOCK_FREE, 0xa, -100, 0);
	report(5, 1, NPS_MEMORY_FREE, 0xb, -7, 0); /* allocated before the capture */
	report(40, 1, NPS_MEMORY_MALLOC, 0xc, 200, 200);
	report(60, 1, NPS_MEMORY_FREE, 0xc, -200, 300); /* streams use it to the end */
	fill(2 * 7, 3);
	is_block(0, 10, 20, 30, 100);
	is_block(1, 40, 60, -1, 200);
	is_block(2, 50, -1, -1, 300);
	assert_int_equal(t->allocation_allocated[0], 100);
	assert_int_equal(t->allocation_reserved[0], 200);
	assert_int_equal(t->allocation_active[0], 101);
	assert_int_equal(t->release_allocated[1], 300);
	assert_int_equal(t->release_active[2], NPS_NULL);
	assert_int_equal(t->stream[0], 0x5000);
	assert_int_equal(t->device[0], 1);
	assert_int_equal(model.memory_record.timestamp[0], REAL0 + 5);
	assert_int_equal(model.memory_record.timestamp[12], REAL0 + 60);
}

/* The release of an address was lost, and it is used again: the first one's end is not known. */
static void a_lost_release(void **state)
{
	(void)state;
	report(10, 1, NPS_MEMORY_MALLOC, 0xa, 100, 100);
	report(20, 1, NPS_MEMORY_MALLOC, 0xa, 100, 200);
	report(30, 1, NPS_MEMORY_FREE, 0xa, -100, 100);
	report(31, 1, NPS_MEMORY_FREE, 0xa, -100, 0); /* a second one changes nothing */
	report(32, 1, NPS_MEMORY_BLOCK_FREE, 0xa, -100, 0);
	fill(2 * 5, 2);
	is_block(0, 10, -1, -1, 100);
	is_block(1, 20, 30, 32, 100);
}

static void owner_is(size_t row, const char *name)
{
	uint32_t text = model.op_memory.name[row];

	if (!name)
		assert_int_equal(text, NPS_NONE);
	else
		assert_string_equal(nps_model__text(&model, text), name);
}

/* The innermost operator of the thread, not one of another thread, nor one that has ended. */
static void owners(void **state)
{
	(void)state;
	operator_add(1, 0, 100, "aten::outer");
	operator_add(1, 10, 20, "aten::inner");
	operator_add(2, 12, 200, "aten::other");
	report(15, 1, NPS_MEMORY_MALLOC, 0xa, 1, 1);
	report(15, 2, NPS_MEMORY_MALLOC, 0xb, 1, 1);
	report(25, 1, NPS_MEMORY_MALLOC, 0xc, 1, 1);
	report(150, 1, NPS_MEMORY_MALLOC, 0xd, 1, 1);
	report(160, 3, NPS_MEMORY_MALLOC, 0xe, 1, 1);
	fill(2 * 5, 5);
	owner_is(0, "aten::inner");
	owner_is(1, "aten::other");
	owner_is(2, "aten::outer");
	owner_is(3, NULL);
	owner_is(4, NULL);
}

/* What the job's memory holds is the job's: nothing of it may overflow, or be made up. */
static void nonsense(void **state)
{
	const struct nps_memory_record_table *t = &model.memory_record;
	struct nps_event *ev;

	(void)state;
	report(10, 1, NPS_MEMORY_MALLOC, ~0ULL, -(1LL << 47), -(1LL << 46));
	report(11, 1, NPS_MEMORY_FREE, ~0ULL, (1LL << 47) - 1, (1LL << 46) - 1);
	ev = report(12, 1, NPS_MEMORY_MALLOC, 0, 5, 5);
	ev->flags = 0xff; /* none of its numbers is known */
	report(13, 1, 3, 0xa, 1, 1);
	report(14, 1, 255, 0xa, 1, 1);
	ev = report(15, 1, NPS_MEMORY_MALLOC, 0xa, 1, 1);
	ev->memory_head.device = -1;
	ev = report(16, 1, NPS_MEMORY_MALLOC, 0xa, 1, 1);
	ev->memory_head.device = 127;
	ev->memory_head.component = 9;
	ev->memory.stream = ~0ULL;
	fill(2 * 3 + 1, 3);
	is_block(0, 10, 11, -1, -(1LL << 47));
	is_block(1, 12, -1, -1, NPS_NULL);
	assert_int_equal(t->allocated[0], -(1LL << 46));
	assert_int_equal(t->allocated[1], -(1LL << 46));
	assert_int_equal(t->allocated[4], NPS_NULL);
	assert_int_equal(t->allocated[5], NPS_NULL); /* and no sum with it */
	assert_int_equal(t->reserved[5], NPS_NULL);
	assert_string_equal(nps_model__text(&model, t->component[6]), "COMPONENT_9");
	assert_int_equal(t->device[6], 127);
	assert_int_equal(model.losses.len, 1);
	assert_int_equal(NPS_AT(&model.losses, struct nps_lost, 0).count, 3);
}

static void nothing(void **state)
{
	(void)state;
	fill(0, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(pairs), TEST(a_lost_release), TEST(owners), TEST(nonsense), TEST(nothing),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
