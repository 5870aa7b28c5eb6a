/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "launches.h"

/* --- records of --record-shapes --- */

static uint16_t records[4]; /* of each thread, so far */

static struct nps_event *tensor_event(uint32_t tid, uint64_t at, struct nps_tensor_head head, uint64_t handle)
{
	struct nps_event *ev;

	event(NPS_EV_TENSOR, records[tid]++, tid, at, at, 0, 0, 0);
	ev = &NPS_AT(&model.events, struct nps_event, model.events.len - 1);
	ev->tensor_head = head;
	ev->handle = handle;
	return ev;
}

static void tensor(uint32_t tid, uint64_t at, uint64_t address, uint32_t rows)
{
	const struct nps_tensor_head head = { .what = NPS_TENSOR_TENSOR, .dims = 2, .type = 1, .format = 2 };
	struct nps_event *ev = tensor_event(tid, at, head, address);

	ev->tensor.size[0] = rows;
	ev->tensor.size[1] = 7;
}

static void operands(uint32_t tid, uint64_t at, const char *name, uint64_t a, uint64_t b)
{
	const struct nps_tensor_head head = { .what = NPS_TENSOR_OPERANDS, .count = 3 };
	struct nps_event *ev = tensor_event(tid, at, head, text(name));

	ev->tensor.member[0] = ev->tensor.member[1] = a;
	ev->tensor.member[2] = b;
}

static void executor_reported(uint32_t tid, uint64_t at, uint64_t executor)
{
	tensor_event(tid, at, (struct nps_tensor_head){ .what = NPS_TENSOR_EXECUTOR }, executor);
}

/* N records of the thread were lost, and counted. */
static void lose(uint32_t tid, uint16_t n)
{
	records[tid] += n;
	model.losses.ring[NPS_EV_TENSOR] += n;
}

/* First phase of operator NAME (letters: first argument to third) with its L0 operator, if it has one. */
static void phase_1(uint32_t tid, uint64_t at, const char *name, uint64_t a, uint64_t b, const char *l0,
		    uint64_t executor)
{
	operands(tid, at, name, a, b);
	mark(NPS_PROBE_NN_PHASE1, tid, at + 1, text(name), 0x99);
	if (l0)
		mark(NPS_PROBE_NN_L0, tid, at + 2, text(l0), executor);
}

static void run(uint32_t tid, uint64_t at, const char *name, uint64_t executor)
{
	mark(NPS_PROBE_NN_PHASE2, tid, at, text(name), executor);
	launch(tid, at + 5, 0xf1, 0);
}

/* The thread goes on to something else, so that its run is over. */
static void go_on(uint32_t tid, uint64_t at)
{
	mark(NPS_PROBE_NN_PHASE1, tid, at, text("aclnnNext"), 0x99);
}

/* Input shapes of a kernel, "" if there are none. */
static const char *shapes_of(size_t sub)
{
	uint32_t list = NPS_AT(&model.subs, struct nps_sub, sub).run;
	struct nps_tensor_texts texts;

	if (list == NPS_NONE)
		return "";
	assert_int_equal(nps_tensors__texts(&model.tensors, list, &texts), 0);
	return nps_strings__get(&model.strings, texts.input_shapes);
}

static int setup_shapes(void **state)
{
	memset(records, 0, sizeof(records));
	return setup(state);
}

static void a_plan_crosses_threads(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	tensor(1, 30, 0xa0, 4); /* the address is used again before the run */
	phase_1(1, 40, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe2);
	run(2, 100, "aclnnMul", 0xe1);
	run(2, 200, "aclnnMul", 0xe2);
	build();
	assert_string_equal(shapes_of(0), "3,7;3,7");
	assert_string_equal(shapes_of(1), "4,7;4,7");
}

static void a_reused_address_starts_anew(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	run(1, 100, "aclnnMul", 0xe1);
	run(1, 200, "aclnnMul", 0xe1); /* another executor of a cache at the same address */
	run(1, 300, "aclnnSoftmax", 0xe1);
	build();
	assert_string_equal(shapes_of(0), "3,7;3,7");
	assert_string_equal(shapes_of(1), "");
	assert_string_equal(shapes_of(2), "");
	assert_int_equal(model.procs[0].unseen_phases, 0);
}

/* What ran without a first phase was planned before the capture; once for each executor. */
static void plans_from_before_the_capture(void **state)
{
	(void)state;
	run(1, 100, "aclnnMul", 0xe1);
	run(1, 200, "aclnnMul", 0xe1);
	run(2, 300, "aclnnAdd", 0xe2);
	tensor(1, 310, 0xa0, 3);
	phase_1(1, 320, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe3);
	run(1, 400, "aclnnMul", 0xe3);
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(2), "3,7;3,7");
	assert_int_equal(model.procs[0].unseen_phases, 2);
}

static void a_plan_that_never_ran(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	run(1, 100, "aclnnAdd", 0xe1);
	phase_1(1, 120, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe2);
	event(NPS_EV_API, NPS_PROBE_NN_DESTROY_EXECUTOR, 1, 130, 131, 0xe2, 0, 0);
	run(1, 200, "aclnnMul", 0xe2);
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(type_of(0), "kernel@0xf1"); /* not of the plan either */
	assert_string_equal(shapes_of(1), "");
}

static void repeatable_executors(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	event(NPS_EV_API, NPS_PROBE_NN_REPEATABLE, 1, 30, 31, 0xe1, 0, 0);
	run(1, 100, "aclnnMul", 0xe1);
	run(2, 200, "aclnnMul", 0xe1);
	build();
	assert_string_equal(shapes_of(0), "3,7;3,7");
	assert_string_equal(shapes_of(1), "3,7;3,7");
}

static void hits_in_the_cache(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 12, 13, 0x4e4, 0, 0);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	run(2, 100, "aclnnMul", 0xe1);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 110, 111, 0x4e4, 0, 0xe5);
	run(2, 200, "aclnnMul", 0xe5);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 210, 211, 0x4e5, 0, 0xe5); /* filled before the capture */
	run(2, 300, "aclnnMul", 0xe5);
	build();
	assert_string_equal(shapes_of(0), "3,7;3,7");
	assert_string_equal(shapes_of(1), "3,7;3,7");
	assert_string_equal(name_of(1), "aclnnMul_Mul");
	assert_string_equal(shapes_of(2), "");
}

/* First phases without L0 operators: the executor is distinguished, or follows from the order. */
static void hits_in_the_operators_cache(void **state)
{
	(void)state;
	launch(1, 5, 0xf0, 0); /* of the job's own */
	tensor(1, 10, 0xa0, 3);
	tensor(1, 11, 0xb0, 4);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, NULL, 0);
	executor_reported(1, 25, 0xe1);
	phase_1(1, 30, "aclnnMul", 0xb0, 0xb0, NULL, 0);
	run(1, 100, "aclnnMul", 0xe2);
	run(2, 200, "aclnnMul", 0xe1);
	phase_1(1, 230, "aclnnMul", 0xa0, 0xa0, NULL, 0); /* two are open: no order distinguishes them */
	phase_1(1, 240, "aclnnMul", 0xb0, 0xb0, NULL, 0);
	run(1, 300, "aclnnMul", 0xe3);
	go_on(1, 400);
	go_on(2, 400);
	build();
	assert_string_equal(shapes_of(1), "4,7;4,7");
	assert_string_equal(shapes_of(2), "");
	assert_string_equal(shapes_of(3), "3,7;3,7"); /* of the second thread */
}

/* Another kernel may follow when it is no longer recorded, or was to: which of them it is is unknown then. */
static void runs_that_the_end_cuts(void **state)
{
	(void)state;
	launch(1, 5, 0xf0, 0); /* of the job's own */
	tensor(1, 10, 0xa0, 3);
	model.end = 300;
	for (uint32_t tid = 1; tid <= 3; tid++) {
		phase_1(tid, 20, "aclnnMul", 0xa0, 0xa0, tid == 3 ? "Mul" : NULL, 0xe0 + tid);
		executor_reported(tid, 25, 0xe0 + tid);
		run(tid, 100, "aclnnMul", 0xe0 + tid);
	}
	go_on(2, 301);
	build();
	assert_string_equal(shapes_of(1), "");
	assert_string_equal(shapes_of(2), "");
	assert_string_equal(shapes_of(3), "3,7;3,7"); /* known to be of one kernel */
}

static void what_does_not_fit_is_not_reported(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xbad, "Mul", 0xe1); /* no tensor of the job */
	run(1, 100, "aclnnMul", 0xe1);
	phase_1(1, 120, "aclnnSoftmax", 0xa0, 0xa0, "SoftmaxV2", 0xe1); /* a tensor for a number */
	run(1, 200, "aclnnSoftmax", 0xe1);
	phase_1(1, 220, "aclnnOfAnotherVendor", 0xa0, 0xa0, "Own", 0xe1);
	run(1, 300, "aclnnOfAnotherVendor", 0xe1);
	records[1]++; /* a record was lost: perhaps a tensor at the same address */
	phase_1(1, 320, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	run(1, 400, "aclnnMul", 0xe1);
	tensor(1, 410, 0xa0, 5);
	phase_1(1, 420, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	run(1, 500, "aclnnMul", 0xe1);
	build();
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(shapes_of(i), "");
	assert_string_equal(shapes_of(4), "5,7;5,7");
}

static void several_kernels_of_an_operator(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Cast", 0xe1);
	mark(NPS_PROBE_NN_L0, 1, 23, text("Mul"), 0xe1);
	run(1, 100, "aclnnMul", 0xe1);
	launch(1, 120, 0xf2, 0);
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "");
}

/* One operator made of another: both phases are recorded twice, of the same executor. */
static void an_operator_inside_another(void **state)
{
	(void)state;
	mark(NPS_PROBE_NN_PHASE1, 1, 10, text("aclnnOuter"), 0x99);
	mark(NPS_PROBE_NN_PHASE1, 1, 11, text("aclnnInner"), 0x99);
	mark(NPS_PROBE_NN_L0, 1, 12, text("Own"), 0xe1);
	mark(NPS_PROBE_NN_PHASE2, 1, 100, text("aclnnOuter"), 0xe1);
	mark(NPS_PROBE_NN_PHASE2, 1, 101, text("aclnnInner"), 0xe1);
	launch(1, 105, 0xf1, 0);
	build();
	assert_string_equal(name_of(0), "aclnnInner_Own");
}

/* --- operators that launch nothing --- */

/*
 * Both phases of an operator of which L0 operators are not known, up to where it launches what it launches.
 */
static void call(uint64_t at, uint64_t rows)
{
	tensor(1, at, 0xc0, rows);
	phase_1(1, at + 1, "aclnnMul", 0xc0, 0xc0, NULL, 0);
	executor_reported(1, at + 5, 0xec);
	mark(NPS_PROBE_NN_PHASE2, 1, at + 10, text("aclnnMul"), 0xec);
}

static void a_run_without_launches(void **state)
{
	(void)state;
	for (uint64_t at = 100; at < 400; at += 100) {
		call(at, at);
		if (at != 200)
			launch(1, at + 20, 0xf1, 0);
	}
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "");
}

/*
 * Kernels that no launch is known of may be the operator's: on another
 * core, or from before the launches' probes.
 */
static void a_run_with_another_kernel(void **state)
{
	(void)state;
	run(1, 50, "aclnnAdd", 0xe7);
	for (uint64_t at = 100; at < 500; at += 100) {
		call(at, at);
		if (at >= 300)
			submission(1, at + 15, 0, 2, at);
		if (at != 300)
			launch(1, at + 20, 0xf1, 0);
	}
	go_on(1, 600);
	build();
	assert_string_equal(shapes_of(1), "100,7;100,7");
	assert_string_equal(shapes_of(2), "200,7;200,7");
	assert_string_equal(shapes_of(3), "");
	assert_string_equal(shapes_of(4), "");
	assert_string_equal(shapes_of(5), "");
}

/* The call that it is made in ends it. */
static void a_run_without_launches_in_another_call(void **state)
{
	(void)state;
	for (uint64_t at = 100; at < 400; at += 100) {
		event(NPS_EV_API, NPS_PROBE_OP_EXECUTE, 1, at, at + 30, 0, 0, 0);
		call(at, at);
		if (at != 200)
			launch(1, at + 20, 0xf1, 0);
		run(1, at + 40, "aclnnAdd", 0xe7);
	}
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(3), "");
}

/* It is over with the call that it is made in, though the thread makes no other. */
static void the_last_run_in_another_call(void **state)
{
	(void)state;
	run(1, 50, "aclnnAdd", 0xe7);
	for (uint64_t at = 100; at < 300; at += 100) {
		event(NPS_EV_API, NPS_PROBE_OP_EXECUTE, 1, at, at + 30, 0, 0, 0);
		call(at, at);
		launch(1, at + 20, 0xf1, 0);
	}
	build();
	assert_string_equal(shapes_of(1), "100,7;100,7");
	assert_string_equal(shapes_of(2), "200,7;200,7");
}

/* Probes are not there at one time: marks come before launches, and after them. */
static void runs_at_the_borders_of_the_capture(void **state)
{
	(void)state;
	model.begin = 100;
	model.end = 405;
	run(1, 70, "aclnnAdd", 0xe7); /* launched by way of a library whose probes are there already */
	mark(NPS_PROBE_NN_PHASE2, 1, 80, text("aclnnMul"), 0xe8);
	mark(NPS_PROBE_NN_PHASE2, 1, 99, text("aclnnMul"), 0xe9);
	mark(NPS_PROBE_NN_RUN, 1, 101, 0xe9, 0); /* at level 2 */
	call(200, 3);
	launch(1, 220, 0xf1, 0);
	call(300, 4);
	launch(1, 320, 0xf1, 0);
	call(390, 5);
	mark(NPS_PROBE_NN_PHASE2, 1, 410, text("aclnnMul"), 0xe8);
	mark(NPS_PROBE_NN_PHASE2, 1, 420, text("aclnnMul"), 0xe9);
	build();
	assert_string_equal(shapes_of(1), "3,7;3,7");
	assert_string_equal(shapes_of(2), "4,7;4,7");
}

/* The capture has begun, but this process was found later. */
static void runs_before_launches_are_recorded(void **state)
{
	(void)state;
	mark(NPS_PROBE_NN_PHASE2, 1, 150, text("aclnnMul"), 0xe8);
	mark(NPS_PROBE_NN_PHASE2, 1, 160, text("aclnnMul"), 0xe9);
	call(200, 3);
	launch(1, 220, 0xf1, 0); /* that may be the second one */
	call(300, 4);
	launch(1, 320, 0xf1, 0);
	go_on(1, 400);
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "4,7;4,7");
}

/* --- what was lost --- */

/* A call of which nothing was lost. */
static void control(uint64_t at, uint64_t rows)
{
	tensor(1, at, 0xc0, rows);
	phase_1(1, at + 1, "aclnnMul", 0xc0, 0xc0, "Mul", 0xec);
	executor_reported(1, at + 5, 0xec);
	run(1, at + 10, "aclnnMul", 0xec);
}

/* A page of the caller's stack was not there. */
static void arguments_that_were_not_read(void **state)
{
	(void)state;
	control(0, 4);
	tensor(1, 20, 0xa0, 3);
	phase_1(1, 30, "aclnnMul", 0xa0, 0, NULL, 0);
	NPS_AT(&model.events, struct nps_event, model.events.len - 2).flags = NPS_F_SLOT_FAULT(0);
	executor_reported(1, 35, 0xe1);
	run(1, 100, "aclnnMul", 0xe1);
	control(200, 4);
	build();
	assert_string_equal(shapes_of(0), "4,7;4,7");
	assert_string_equal(shapes_of(1), "");
	assert_string_equal(shapes_of(2), "4,7;4,7");
}

/* Where nothing marks first phases, and the one before had no executor. */
static void arguments_that_were_not_read_behind_others(void **state)
{
	(void)state;
	control(0, 4);
	tensor(1, 20, 0xa0, 3);
	tensor(1, 21, 0xb0, 5);
	operands(1, 30, "aclnnMul", 0xb0, 0xb0);
	operands(1, 40, "aclnnMul", 0xa0, 0);
	NPS_AT(&model.events, struct nps_event, model.events.len - 1).flags = NPS_F_SLOT_FAULT(0);
	executor_reported(1, 45, 0xe1);
	run(1, 100, "aclnnMul", 0xe1);
	control(200, 4);
	build();
	assert_string_equal(shapes_of(1), "");
	assert_string_equal(shapes_of(2), "4,7;4,7");
}

/* Of the first call nothing came behind its arguments, of the second one nothing before its mark. */
static void arguments_of_an_earlier_call(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 600; at += 200) {
		tensor(1, at + 10, 0xa0, 3);
		operands(1, at + 20, "aclnnMul", 0xa0, 0xa0);
		lose(1, 3);
		mark(NPS_PROBE_NN_PHASE1, 1, at + 30, text("aclnnMul"), 0x99);
		mark(NPS_PROBE_NN_L0, 1, at + 31, text("Mul"), 0xe1);
		if (!at) /* the gap shows before the run, after it, never */
			executor_reported(1, at + 35, 0xe1);
		run(at == 200 ? 2 : 1, at + 40, "aclnnMul", 0xe1);
		if (at < 400)
			control(at + 100, at + 1);
	}
	build();
	assert_int_equal(model.subs.len, 5);
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "1,7;1,7");
	assert_string_equal(shapes_of(2), "201,7;201,7");
	assert_string_equal(shapes_of(3), "");
	assert_string_equal(shapes_of(4), ""); /* in the second thread */
}

/* The executor's address is given out again, all of which is lost but the run. */
static void a_plan_of_an_earlier_call(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	executor_reported(1, 25, 0xe1);
	lose(1, 3);
	run(1, 40, "aclnnMul", 0xe1);
	control(100, 4);
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "4,7;4,7");
}

/* The same with second phases in another thread, which are late: the first one has seen the gap by then. */
static void a_plan_of_an_earlier_call_of_two_threads(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	executor_reported(1, 25, 0xe1);
	lose(1, 3);
	tensor(1, 30, 0xb0, 5);
	phase_1(1, 40, "aclnnMul", 0xb0, 0xb0, "Mul", 0xe2);
	executor_reported(1, 45, 0xe2);
	run(2, 100, "aclnnMul", 0xe1);
	run(2, 200, "aclnnMul", 0xe2);
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "5,7;5,7");
}

/* A thread that makes the tensors of another one loses a record of the tensor at that address now. */
static void a_tensor_of_another_thread(void **state)
{
	(void)state;
	tensor(2, 10, 0xa0, 3);
	lose(2, 1);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	executor_reported(1, 25, 0xe1);
	run(1, 40, "aclnnMul", 0xe1);
	tensor(2, 80, 0xb0, 3);
	control(100, 4);
	build();
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "4,7;4,7");
}

/* A plan that came to the cache right is right at each hit, a stale one at none. */
static void plans_in_the_cache(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 5, 6, 0x4e4, 0, 0);
	tensor(1, 10, 0xa0, 3);
	operands(1, 20, "aclnnMul", 0xa0, 0xa0);
	lose(1, 3);
	mark(NPS_PROBE_NN_PHASE1, 1, 30, text("aclnnMul"), 0x99);
	mark(NPS_PROBE_NN_L0, 1, 31, text("Mul"), 0xe1);
	tensor(1, 80, 0xb0, 5);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 90, 91, 0x4e5, 0, 0);
	control(100, 4);
	tensor(1, 130, 0xb0, 5);
	lose(1, 1);
	tensor(1, 150, 0xb0, 5);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 200, 201, 0x4e4, 0, 0xe5);
	run(1, 210, "aclnnMul", 0xe5);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 300, 301, 0x4e5, 0, 0xe6);
	run(1, 310, "aclnnMul", 0xe6);
	build();
	assert_string_equal(shapes_of(0), "4,7;4,7");
	assert_string_equal(shapes_of(1), "");
	assert_string_equal(shapes_of(2), "4,7;4,7");
}

/* The last query of the cache need not be what the first phase behind a gap is for. */
static void a_key_of_an_earlier_call(void **state)
{
	(void)state;
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 5, 6, 0x4e4, 0, 0);
	tensor(1, 10, 0xa0, 3);
	lose(1, 3);
	control(100, 4);
	event(NPS_EV_API, NPS_PROBE_PTA_GET, 1, 200, 201, 0x4e4, 0, 0xe5);
	run(1, 210, "aclnnMul", 0xe5);
	build();
	assert_string_equal(shapes_of(0), "4,7;4,7");
	assert_string_equal(shapes_of(1), "");
}

/* Numbers that begin anew are another thread's with that id, or 65536 of them are over and some were lost. */
static const char *after_new_numbers(uint64_t lost)
{
	tensor(1, 10, 0xa0, 3);
	tensor(1, 11, 0xb0, 3);
	records[1] = 0;
	model.losses.ring[NPS_EV_TENSOR] = lost;
	tensor(1, 15, 0xb0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	executor_reported(1, 25, 0xe1);
	run(1, 40, "aclnnMul", 0xe1);
	tensor(1, 50, 0xb0, 3);
	build();
	return shapes_of(0);
}

static void numbers_that_begin_anew(void **state)
{
	(void)state;
	assert_string_equal(after_new_numbers(0), "3,7;3,7");
}

static void numbers_that_begin_anew_after_a_loss(void **state)
{
	(void)state;
	assert_string_equal(after_new_numbers(UINT16_MAX - 1), "");
}

/* Only the run function shows the second operator, and not which one it is. */
static void a_run_without_a_name(void **state)
{
	(void)state;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, "Mul", 0xe1);
	executor_reported(1, 25, 0xe1);
	model.losses.ring[NPS_EV_MARK] = 3;
	mark(NPS_PROBE_NN_RUN, 1, 40, 0xe1, 0);
	launch(1, 45, 0xf1, 0);
	build();
	assert_string_equal(shapes_of(0), "");
}

/*
 * A second phase is of the arguments that were recorded last, though the mark of their first phase was lost.
 */
static void arguments_without_a_mark(void **state)
{
	(void)state;
	model.losses.ring[NPS_EV_MARK] = 2;
	tensor(1, 10, 0xa0, 3);
	phase_1(1, 20, "aclnnMul", 0xa0, 0xa0, NULL, 0);
	tensor(1, 30, 0xb0, 4);
	operands(1, 40, "aclnnMul", 0xb0, 0xb0);
	run(1, 50, "aclnnMul", 0xe1);
	build();
	assert_string_equal(shapes_of(0), "");
}

static void kernel(uint64_t at, uint16_t stream, uint16_t task)
{
	submission(1, at, NPS_SQE_AI_CORE, stream, task);
	launch_call(1, at, 0xf1);
}

/* Calls of one kernel each, of stream 2, behind it and another one behind all of them. */
static void calls_from(uint64_t at, uint16_t task)
{
	call(at, 8);
	kernel(at + 20, 2, task);
	call(at + 100, 9);
	kernel(at + 120, 2, task + 1);
	go_on(1, at + 200);
	build();
}

/* The job launches a kernel of its own behind the operator's, of which the submission was lost. */
static void a_kernel_behind_a_lost_one(uint64_t lost)
{
	model.losses.ring[NPS_EV_SQE] = lost;
	kernel(1, 2, UINT16_MAX - 1);
	call(100, 3);
	kernel(130, 2, 0);
	calls_from(200, 1);
}

static void of_a_run_that_lost_its_kernel(void **state)
{
	(void)state;
	a_kernel_behind_a_lost_one(1);
	assert_string_equal(shapes_of(1), "");
	assert_string_equal(shapes_of(2), "8,7;8,7");
	assert_string_equal(shapes_of(3), ""); /* what comes behind it is not seen */
}

static void what_was_not_lost_is_not_missed(void **state)
{
	(void)state;
	a_kernel_behind_a_lost_one(0);
	assert_string_equal(shapes_of(1), "3,7;3,7");
	assert_string_equal(shapes_of(2), "8,7;8,7");
	assert_string_equal(shapes_of(3), "9,7;9,7");
}

/* The gap is not beside the kernel, or in another stream. */
static void lost_kernels_elsewhere(void **state)
{
	(void)state;
	model.losses.ring[NPS_EV_SQE] = 2;
	kernel(1, 2, 10);
	kernel(20, 3, 70);
	call(100, 3);
	submission(1, 120, NPS_SQE_EVENT_RECORD, 2, 12);
	kernel(130, 2, 13);
	call(200, 4);
	kernel(230, 2, 14); /* and in stream 3 one that was lost */
	call(300, 5);
	submission(1, 320, NPS_SQE_EVENT_RECORD, 3, 72);
	kernel(330, 2, 15);
	calls_from(400, 16);
	assert_int_equal(model.subs.len, 9);
	assert_string_equal(shapes_of(3), "");
	assert_string_equal(shapes_of(4), "");
	assert_string_equal(shapes_of(6), "");
	assert_string_equal(shapes_of(7), "8,7;8,7");
}

/* The first of the stream: those before it may be lost. */
static void the_first_kernel_of_a_stream(void **state)
{
	(void)state;
	model.losses.ring[NPS_EV_MARK] = 1;
	call(100, 3);
	kernel(130, 2, 10);
	calls_from(200, 11);
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "8,7;8,7");
}

/* Of the operator's kernel the call is lost, so that it is not known whose it is. */
static void a_kernel_without_its_call(void **state)
{
	(void)state;
	model.losses.ring[NPS_EV_API] = 2;
	kernel(1, 2, 10);
	call(100, 3);
	submission(1, 120, NPS_SQE_AI_CORE, 2, 11);
	kernel(130, 2, 12);
	call(200, 4); /* of two kernels */
	kernel(220, 2, 13);
	submission(1, 230, NPS_SQE_AI_CORE, 2, 14);
	calls_from(300, 15);
	assert_string_equal(shapes_of(2), "");
	assert_string_equal(shapes_of(3), "");
	assert_string_equal(shapes_of(5), "8,7;8,7");
}

/* Tasks of a 950 are numbered through, whatever their stream. */
static void numbers_of_a_950(void **state)
{
	(void)state;
	model.losses.ring[NPS_EV_SQE] = 1;
	model.devices[0].has_platform = true;
	model.devices[0].platform = NPS_CHIP_950;
	for (uint32_t i = 0; i < 4; i++) { /* 65536 + i, by turns of two streams */
		if (i)
			call(100 * i, i);
		submission(1, 100 * i + 20, NPS_SQE_AI_CORE, i, 1);
		NPS_AT(&model.events, struct nps_event, model.events.len - 1).call.slot[3] = i & 1;
		launch_call(1, 100 * i + 20, 0xf1);
	}
	build();
	assert_int_equal(NPS_AT(&model.subs, struct nps_sub, 3).task, 65536 + 3);
	assert_string_equal(shapes_of(0), "");
	assert_string_equal(shapes_of(1), "1,7;1,7");
	assert_string_equal(shapes_of(2), "2,7;2,7");
	assert_string_equal(shapes_of(3), "");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_shapes, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_plan_crosses_threads),
		TEST(a_reused_address_starts_anew),
		TEST(plans_from_before_the_capture),
		TEST(a_plan_that_never_ran),
		TEST(repeatable_executors),
		TEST(hits_in_the_cache),
		TEST(hits_in_the_operators_cache),
		TEST(runs_that_the_end_cuts),
		TEST(arguments_that_were_not_read),
		TEST(arguments_that_were_not_read_behind_others),
		TEST(what_does_not_fit_is_not_reported),
		TEST(several_kernels_of_an_operator),
		TEST(an_operator_inside_another),
		TEST(a_run_without_launches),
		TEST(a_run_with_another_kernel),
		TEST(a_run_without_launches_in_another_call),
		TEST(the_last_run_in_another_call),
		TEST(runs_at_the_borders_of_the_capture),
		TEST(runs_before_launches_are_recorded),
		TEST(arguments_of_an_earlier_call),
		TEST(a_plan_of_an_earlier_call),
		TEST(a_plan_of_an_earlier_call_of_two_threads),
		TEST(a_tensor_of_another_thread),
		TEST(plans_in_the_cache),
		TEST(a_key_of_an_earlier_call),
		TEST(numbers_that_begin_anew),
		TEST(numbers_that_begin_anew_after_a_loss),
		TEST(a_run_without_a_name),
		TEST(arguments_without_a_mark),
		TEST(of_a_run_that_lost_its_kernel),
		TEST(what_was_not_lost_is_not_missed),
		TEST(lost_kernels_elsewhere),
		TEST(the_first_kernel_of_a_stream),
		TEST(a_kernel_without_its_call),
		TEST(numbers_of_a_950),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
