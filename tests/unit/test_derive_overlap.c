/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>

#include "derive/derive.h"
#include "overlap_reference.h"
#include "derive/sweep.h"

static void add_task(struct nps_model *m, uint32_t device, uint64_t start, uint64_t end, uint32_t connection)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->task.t, &row), 0);
	m->task.start[row] = start;
	m->task.end[row] = end;
	m->task.device[row] = device;
	m->task.connection[row] = connection;
	m->task.class[row] = NPS_CLASS_COMPUTE;
	m->task.model[row] = NPS_NO_ID;
}

static void add_op(struct nps_model *m, uint32_t device, uint64_t start, uint64_t end, const char *name)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->comm_op.t, &row), 0);
	m->comm_op.start[row] = start;
	m->comm_op.end[row] = end;
	m->comm_op.device[row] = device;
	m->comm_op.connection[row] = NPS_NO_ID;
	m->comm_op.model[row] = NPS_NO_ID;
	m->comm_op.name[row] = nps_strings__addz(m->strings, name);
}

static void add_step(struct nps_model *m, int64_t id, uint64_t start, uint64_t end)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->step.t, &row), 0);
	m->step.id[row] = id;
	m->step.start[row] = start;
	m->step.end[row] = end;
}

static void add_call(struct nps_model *m, uint64_t start, uint32_t connection)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->api.t, &row), 0);
	m->api.start[row] = start;
	m->api.end[row] = start + 1;
	m->api.connection[row] = connection;
}

static void assert_us(double us, uint64_t ns)
{
	assert_true(us == ns / 1000.0);
}

/* Random intervals: what the sweep appends is what lists give, and tiles the time. */
static void as_with_lists(void **state)
{
	(void)state;
	srandom(7);
	for (int round = 0; round < 300; round++) {
		struct nps_span spans[2][40];
		struct nps_overlap_sums sums, *swept;
		size_t n[2] = { random() % 40, 1 + random() % 39 }, at[2] = { 0 };
		struct nps_sweep sweep = { 0 };
		struct nps_model m;
		uint64_t free_end = 0;

		assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
		for (int type = 0; type < 2; type++) {
			uint64_t time = 1000;

			for (size_t i = 0; i < n[type]; i++) {
				time += random() % 20;
				spans[type][i] = (struct nps_span){ time, time + 1 + random() % 30, 0, 0 };
			}
		}
		while (at[0] < n[0] || at[1] < n[1]) {
			bool comm = at[0] == n[0] ||
				    (at[1] < n[1] && spans[1][at[1]].start < spans[0][at[0]].start);
			const struct nps_span *s = &spans[comm][at[comm]++];

			assert_int_equal(nps_sweep__add(&sweep, comm, s->start, s->end, &m.overlap, 5), 0);
		}
		assert_int_equal(nps_sweep__finish(&sweep, &m.overlap, 5), 0);
		assert_int_equal(nps_overlap__build(spans[0], n[0], spans[1], n[1], 5, NULL, &sums), 0);
		swept = &sweep.sums;
		assert_int_equal(swept->computing, sums.computing);
		assert_int_equal(swept->communication, sums.communication);
		assert_int_equal(swept->not_overlapped, sums.not_overlapped);
		assert_int_equal(swept->free, sums.free);
		assert_int_equal(swept->first, sums.first);
		assert_int_equal(swept->last, sums.last);
		free_end = sums.first;
		for (size_t i = 0; i < m.overlap.t.len; i++) {
			assert_int_equal(m.overlap.device[i], 5);
			assert_true(!i || m.overlap.start[i] >= m.overlap.start[i - 1]);
			if (m.overlap.type[i] == NPS_OVERLAP_COMM)
				continue;
			assert_int_equal(m.overlap.start[i], free_end); /* no gap, nothing twice */
			free_end = m.overlap.end[i];
		}
		assert_int_equal(free_end, sums.last);
		nps_model__free(&m);
	}
}

static void no_steps_two_devices(void **state)
{
	struct nps_model m;
	size_t row = 0;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	/* A device that did nothing; host bounds and unmeasured collectives are no measurements. */
	assert_int_equal(nps_table__add(&m.device.t, &row), 0);
	m.device.id[row] = 9;
	nps_model__cover(&m, 500, 9000);
	add_call(&m, 900, NPS_NO_ID);
	add_task(&m, 1, 1000, 2000, NPS_NO_ID);
	add_task(&m, 0, 1500, 1600, NPS_NO_ID);
	add_task(&m, 0, 1600, 1900, NPS_NO_ID);
	m.task.source[2] = NPS_TIME_HOST_BOUNDS;
	add_task(&m, 1, 3000, 3500, NPS_NO_ID);
	add_op(&m, 1, 1800, 2600, "hcom_receive__001_0_1");
	add_op(&m, 1, 3200, 3900, "hcom_allReduce__001_1_1");
	m.comm_op.tasks[1] = 4;
	assert_int_equal(nps_derive__steps(&m), 0);
	assert_int_equal(nps_derive__overlap(&m), 0);
	assert_int_equal(m.task.step[0], NPS_NONE);

	assert_int_equal(m.step_trace.t.len, 2); /* none of a device that did nothing */
	assert_int_equal(m.step_trace.device[0], 0);
	assert_us(m.step_trace.computing[0], 100);
	assert_us(m.step_trace.preparing[0], 600); /* from the first call */
	assert_string_equal(nps_model__text(&m, m.step_trace.step[1]), "");
	assert_us(m.step_trace.computing[1], 1500);
	assert_us(m.step_trace.communication[1], 800);
	assert_us(m.step_trace.not_overlapped[1], 600);
	assert_us(m.step_trace.overlapped[1], 200);
	assert_us(m.step_trace.free[1], 400);
	assert_us(m.step_trace.bubble[1], 800);
	assert_us(m.step_trace.stage[1], 2500 - 800);
	assert_us(m.step_trace.exclude_receive[1], 0);

	/* Every device has a slice of computing, not overlapped and free, if only an empty one. */
	for (uint32_t device = 0; device < 10; device++) {
		unsigned int types = 0;

		for (size_t i = 0; i < m.overlap.t.len; i++)
			if (m.overlap.device[i] == device) {
				types |= 1U << m.overlap.type[i];
				assert_true(m.overlap.start[i] >= 500 && m.overlap.end[i] <= 9000);
			}
		assert_int_equal(types & 13U, device == 0 || device == 1 || device == 9 ? 13 : 0);
	}
	nps_model__free(&m);
}

/* A kernel that runs after its step's end still belongs to the step in which it was launched. */
static void windows_by_connection(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_step(&m, 3, 1000, 2000);
	add_step(&m, 4, 2000, 3000);
	add_call(&m, 1100, 11);
	add_call(&m, 1900, 12);
	add_call(&m, 2100, 13);
	add_task(&m, 0, 900, 950, NPS_NO_ID); /* before */
	add_task(&m, 0, 1200, 1300, 11);
	add_task(&m, 0, 2050, 2150, 12); /* late */
	add_op(&m, 0, 2060, 2070, "hcom_send");
	add_task(&m, 0, 2200, 2300, 13);
	add_task(&m, 0, 2990, 3100, NPS_NO_ID);
	add_task(&m, 0, 3200, 3300, NPS_NO_ID); /* after */
	assert_int_equal(nps_derive__steps(&m), 0);
	assert_int_equal(nps_derive__overlap(&m), 0);
	assert_int_equal(m.task.step[0], NPS_NONE);
	assert_int_equal(m.task.step[1], 0);
	assert_int_equal(m.task.step[2], 0);
	assert_int_equal(m.comm_op.step[0], 0);
	assert_int_equal(m.task.step[3], 1);
	assert_int_equal(m.task.step[4], 1);
	assert_int_equal(m.task.step[5], NPS_NONE);
	assert_int_equal(m.step_trace.t.len, 2);
	assert_string_equal(nps_model__text(&m, m.step_trace.step[0]), "3");
	assert_us(m.step_trace.computing[0], 200);
	assert_us(m.step_trace.stage[0], 2150 - 1200);
	assert_us(m.step_trace.preparing[0], 200);
	assert_us(m.step_trace.preparing[1], 200);
	nps_model__free(&m);
}

/* Step 4 ran a collective whose call was not recorded, and no kernel; step 5 ran nothing. */
static void steps_without_a_launch(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_step(&m, 3, 1000, 2000);
	add_step(&m, 4, 2000, 3000);
	add_step(&m, 5, 3000, 4000);
	add_call(&m, 1100, 11);
	add_call(&m, 1900, 12);
	add_task(&m, 0, 1200, 1300, 11);
	add_task(&m, 0, 2050, 2150, 12); /* late */
	add_op(&m, 0, 2100, 2140, "hcom_send"); /* while step 3 is not done */
	add_op(&m, 0, 2500, 2590, "hcom_allReduce");
	assert_int_equal(nps_derive__steps(&m), 0);
	assert_int_equal(nps_derive__overlap(&m), 0);
	assert_int_equal(m.task.step[1], 0);
	assert_int_equal(m.comm_op.step[0], 0);
	assert_int_equal(m.comm_op.step[1], 1);
	assert_int_equal(m.step_trace.t.len, 3);
	assert_us(m.step_trace.communication[1], 90);
	assert_us(m.step_trace.preparing[1], 500);
	assert_us(m.step_trace.stage[2], 0);
	nps_model__free(&m);
}

/* Where the time of submission is known it decides, whatever the device did meanwhile. */
static void steps_by_submission(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_step(&m, 1, 1000, 2000);
	add_step(&m, 2, 2000, 3000);
	add_task(&m, 0, 2500, 2600, NPS_NO_ID);
	add_task(&m, 0, 2550, 2700, NPS_NO_ID);
	add_task(&m, 0, 5000, 5100, NPS_NO_ID);
	add_task(&m, 0, 5200, 5300, NPS_NO_ID);
	m.task.submit[0] = 2000;
	m.task.submit[1] = 1999;
	m.task.submit[2] = 1000;
	m.task.submit[3] = 3000;
	add_call(&m, 1500, 1);
	add_call(&m, 3000, 2);
	add_op(&m, 0, 2505, 2508, "its call is unknown");
	add_op(&m, 0, 2510, 2520, "in the first");
	add_op(&m, 0, 2530, 2540, "after all of them");
	m.comm_op.connection[1] = 1;
	m.comm_op.connection[2] = 2;
	assert_int_equal(nps_derive__steps(&m), 0);
	assert_int_equal(m.comm_op.step[0], 1);
	assert_int_equal(m.comm_op.step[1], 0);
	assert_int_equal(m.comm_op.step[2], NPS_NONE);
	assert_int_equal(m.task.step[0], 1);
	assert_int_equal(m.task.step[1], 0);
	assert_int_equal(m.task.step[2], 0);
	assert_int_equal(m.task.step[3], NPS_NONE);
	assert_int_equal(nps_derive__overlap(&m), 0);
	assert_us(m.step_trace.free[0], 5000 - 2700 + 30);
	assert_us(m.step_trace.computing[1], 100);
	nps_model__free(&m);
}

static void add_queue(struct nps_model *m, const char *name, uint64_t gtid, uint64_t start, uint64_t end)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->torch.t, &row), 0);
	m->torch.type[row] = NPS_API_TORCH_QUEUE;
	m->torch.name[row] = nps_strings__addz(m->strings, name);
	m->torch.gtid[row] = gtid;
	m->torch.start[row] = start;
	m->torch.end[row] = end;
	m->torch.correlation[row] = 77;
}

/*
 * What is taken out of the queue late is of the step that put it in, whether or not its submission is known.
 */
static void steps_by_queue(void **state)
{
	(void)state;
	for (int submits = 0; submits < 2; submits++) {
		struct nps_model m;

		assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
		add_step(&m, 3, 1000, 2000);
		add_step(&m, 4, 2000, 3000);
		add_queue(&m, "Enqueue", 1, 1900, 1910);
		add_queue(&m, "Dequeue", 2, 2100, 2200);
		add_call(&m, 2150, 11);
		m.api.gtid[0] = 2;
		add_call(&m, 2300, 12);
		m.api.gtid[1] = 2;
		add_task(&m, 0, 2160, 2170, 11);
		add_task(&m, 0, 2310, 2320, 12);
		for (int i = 0; submits && i < 2; i++)
			m.task.submit[i] = m.api.start[i];
		assert_int_equal(nps_derive__steps(&m), 0);
		assert_int_equal(m.task.step[0], 0);
		assert_int_equal(m.task.step[1], 1);
		nps_model__free(&m);
	}
}

/* A graph that step 3 loaded runs in both: its launch widens no step. */
static void steps_of_graphs(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_step(&m, 3, 1000, 2000);
	add_step(&m, 4, 2000, 3000);
	add_call(&m, 1100, 11);
	add_call(&m, 1200, 12);
	add_call(&m, 2100, 13);
	add_task(&m, 0, 1210, 1220, 12);
	add_task(&m, 0, 1300, 1310, 11);
	add_task(&m, 0, 2110, 2120, 13);
	add_task(&m, 0, 2300, 2310, 11);
	for (size_t i = 0; i < 4; i++)
		m.task.submit[i] = i % 2 ? 0 : m.task.start[i] - 5;
	m.task.model[1] = m.task.model[3] = 7;
	add_op(&m, 0, 2400, 2410, "hcom_send");
	m.comm_op.connection[0] = 11;
	m.comm_op.model[0] = 7;
	assert_int_equal(nps_derive__steps(&m), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(m.task.step[i], i / 2);
	assert_int_equal(m.comm_op.step[0], 1);
	nps_model__free(&m);
}

static void is_unmeasured(const struct nps_model *m, size_t i, uint32_t device, const char *step,
			  size_t before)
{
	const struct nps_unmeasured_step *row = &NPS_AT(&m->unmeasured_steps, struct nps_unmeasured_step, i);

	assert_int_equal(row->device, device);
	assert_string_equal(nps_model__text(m, row->step), step);
	assert_int_equal(row->before, before);
}

/*
 * Steps and devices of which nothing was measured have no times, and are reported;
 * also a device that only its tasks name.
 */
static void unmeasured_steps(void **state)
{
	struct nps_model m;
	unsigned int types = 0;
	size_t row = 0;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	nps_model__cover(&m, 500, 9000);
	add_step(&m, 10, 1000, 2000);
	add_step(&m, 11, 2000, 3000);
	add_step(&m, 12, 3000, 4000);
	add_task(&m, 0, 1100, 1200, NPS_NO_ID);
	add_task(&m, 1, 1300, 1300, NPS_NO_ID);
	add_task(&m, 0, 2100, 2100, NPS_NO_ID);
	add_task(&m, 0, 3100, 3300, NPS_NO_ID);
	for (size_t i = 0; i < 4; i++) {
		m.task.submit[i] = m.task.start[i];
		m.task.source[i] = i == 0 || i == 3 ? NPS_TIME_DEVICE_LOG : NPS_TIME_HOST_BOUNDS;
	}
	add_op(&m, 1, 2200, 2200, "hcom_allReduce");
	m.comm_op.tasks[0] = 1;
	assert_int_equal(nps_derive__steps(&m), 0);
	m.comm_op.step[0] = 1;
	assert_int_equal(nps_derive__overlap(&m), 0);
	assert_int_equal(m.step_trace.t.len, 3);
	assert_string_equal(nps_model__text(&m, m.step_trace.step[0]), "10");
	assert_string_equal(nps_model__text(&m, m.step_trace.step[1]), "12");
	assert_us(m.step_trace.computing[1], 200);
	assert_int_equal(m.step_trace.device[2], 1); /* it had nothing to do in step 12 */
	assert_us(m.step_trace.stage[2], 0);
	assert_int_equal(m.unmeasured_steps.len, 3);
	is_unmeasured(&m, 0, 0, "11", 1);
	is_unmeasured(&m, 1, 1, "10", 2);
	is_unmeasured(&m, 2, 1, "11", 2);
	for (size_t i = 0; i < m.overlap.t.len; i++)
		types |= m.overlap.device[i] == 1 ? 1U << m.overlap.type[i] : 0;
	assert_int_equal(types, 13);

	/* Of a database of these, which has no rows of them. */
	m.overlapped = m.step_traced = true;
	m.unmeasured_steps.len = 0;
	assert_int_equal(nps_table__add(&m.bounds.t, &row), 0);
	m.bounds.task[row] = 1;
	assert_int_equal(nps_derive__overlap(&m), 0);
	assert_int_equal(m.step_trace.t.len, 3);
	assert_int_equal(m.unmeasured_steps.len, 3);
	nps_model__free(&m);
}

/* Times that go back and numbers out of range do no harm. */
static void nonsense(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_step(&m, 2, UINT64_MAX, 0);
	add_step(&m, 1, 500, 400);
	add_call(&m, 450, 0);
	add_call(&m, 450, 4294967294U);
	add_task(&m, 4294967295U, UINT64_MAX, 0, 0);
	add_task(&m, 0, 10, UINT64_MAX, 4294967294U);
	add_task(&m, 0, 5, 1, 7);
	add_op(&m, 0, UINT64_MAX, 3, "x");
	add_op(&m, 0, 0, UINT64_MAX, "hcom_receive");
	assert_int_equal(nps_derive__steps(&m), 0);
	assert_int_equal(nps_derive__overlap(&m), 0);
	nps_model__free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_with_lists),
		cmocka_unit_test(no_steps_two_devices),
		cmocka_unit_test(windows_by_connection),
		cmocka_unit_test(steps_without_a_launch),
		cmocka_unit_test(steps_by_submission),
		cmocka_unit_test(steps_by_queue),
		cmocka_unit_test(steps_of_graphs),
		cmocka_unit_test(unmeasured_steps),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
