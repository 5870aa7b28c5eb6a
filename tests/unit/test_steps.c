/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>

#include "import/session/steps.h"

static struct nps_session model;

static int setup(void **state)
{
	(void)state;
	nps_session__init(&model, AT_FDCWD, AT_FDCWD);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nps_session__free(&model);
	return 0;
}

static void mark(uint32_t pid, uint64_t at, uint64_t first, uint64_t second)
{
	struct nps_event *ev = nps_vec__push(&model.events);

	*ev = (struct nps_event){ .kind = NPS_EV_MARK,
				  .probe = NPS_PROBE_STEP_MARKER,
				  .pid = pid,
				  .tid = pid,
				  .start = at,
				  .call.slot = { first, second } };
	nps_session__proc(&model, pid);
}

static void marker_arguments(void **state)
{
	(void)state;
	assert_int_equal(nps_step_marker_arg(NULL), 0);
	assert_int_equal(nps_step_marker_arg("lib.so:f"), 0);
	assert_int_equal(nps_step_marker_arg("lib.so:f@1"), 1);
	assert_int_equal(nps_step_marker_arg("lib.so:f@4"), 4);
	assert_int_equal(nps_step_marker_arg("lib.so:f@5"), 0);
	assert_int_equal(nps_step_marker_arg("lib.so:f@12"), 0);
}

static void marks_bound_steps(void **state)
{
	const struct nps_step *steps;

	(void)state;
	mark(7, 300, 0, 0); /* out of order: another CPU's chunk came first */
	mark(7, 100, 0, 0);
	mark(8, 150, 0, 0);
	mark(7, 200, 0, 0);
	assert_int_equal(nps_steps__build(&model), 0);
	assert_int_equal(model.procs[0].steps.len, 2); /* nothing ends the third */
	steps = model.procs[0].steps.data;
	assert_int_equal(steps[0].number, 0);
	assert_int_equal(steps[0].start, 100);
	assert_int_equal(steps[0].end, 200);
	assert_int_equal(steps[1].end, 300);
	assert_int_equal(model.procs[1].steps.len, 0);
	assert_int_equal(nps_steps__at(&model.procs[0], 99), NPS_NONE);
	assert_int_equal(nps_steps__at(&model.procs[0], 100), 0);
	assert_int_equal(nps_steps__at(&model.procs[0], 199), 0);
	assert_int_equal(nps_steps__at(&model.procs[0], 200), 1);
	assert_int_equal(nps_steps__at(&model.procs[0], 300), NPS_NONE);
	assert_int_equal(nps_steps__at(&model.procs[1], 150), NPS_NONE);
}

static void numbers_come_from_the_argument(void **state)
{
	(void)state;
	model.json = cJSON_Parse("{\"request\": {\"step_marker\": \"lib.so:step@2\"}}");
	mark(7, 100, 1, 50);
	mark(7, 200, 1, 51);
	mark(7, 300, 1, 52);
	assert_int_equal(nps_steps__build(&model), 0);
	assert_int_equal(NPS_AT(&model.procs[0].steps, struct nps_step, 0).number, 50);
	assert_int_equal(NPS_AT(&model.procs[0].steps, struct nps_step, 1).number, 51);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marker_arguments),
		cmocka_unit_test_setup_teardown(marks_bound_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_come_from_the_argument, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
