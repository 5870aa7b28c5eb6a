/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <string.h>

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
	assert_int_equal(nps_step_marker_arg("label:f@1"), 0);
	assert_null(nps_step_marker_label(NULL));
	assert_null(nps_step_marker_label("lib.so:f"));
	assert_string_equal(nps_step_marker_label("label:f@1"), "f@1");
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

static uint32_t known_text(uint64_t id, const char *text)
{
	uint32_t string = nps_strings__add(&model.strings, text, strlen(text));

	assert_int_equal(nps_map__put(&model.string_ids, id, string), 0);
	return string;
}

static void label(struct nps_proc *proc, uint64_t at, uint64_t text, uint16_t probe)
{
	struct nps_event *ev = nps_vec__push(&proc->torch);

	*ev = (struct nps_event){
		.kind = NPS_EV_API, .probe = probe, .start = at, .dur = 5, .call.slot = { text }
	};
}

/* Labels of PyTorch, and marks of mstx, with the text of the marker, in each process. */
static void labels_bound_steps(void **state)
{
	uint32_t text = known_text(1, "step@1"), other = known_text(2, "step");
	struct nps_mstx_mark *mark;
	struct nps_proc *proc;
	const struct nps_step *steps;

	(void)state;
	model.json = cJSON_Parse("{\"request\": {\"step_marker\": \"label:step@1\"}}");
	proc = nps_session__proc(&model, 7);
	label(proc, 200, 1, NPS_PROBE_TORCH_LABEL); /* in the order in which they end */
	label(proc, 100, 1, NPS_PROBE_TORCH_LABEL);
	label(proc, 120, 2, NPS_PROBE_TORCH_LABEL);
	label(proc, 130, 1, NPS_PROBE_TORCH_OP); /* an operator by that name */
	label(proc, 140, 3, NPS_PROBE_TORCH_LABEL); /* its text was lost */
	mark = nps_vec__push(&proc->marks);
	*mark = (struct nps_mstx_mark){ .start = 300, .message = text };
	mark = nps_vec__push(&proc->marks);
	*mark = (struct nps_mstx_mark){ .start = 350, .message = other };
	nps_session__proc(&model, 8);
	assert_int_equal(nps_steps__build(&model), 0);
	proc = &model.procs[0];
	assert_int_equal(proc->steps.len, 2);
	steps = proc->steps.data;
	assert_int_equal(steps[0].start, 100);
	assert_int_equal(steps[0].end, 200);
	assert_int_equal(steps[1].end, 300);
	assert_int_equal(steps[1].number, 1);
	assert_int_equal(model.procs[1].steps.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marker_arguments),
		cmocka_unit_test_setup_teardown(marks_bound_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_come_from_the_argument, setup, teardown),
		cmocka_unit_test_setup_teardown(labels_bound_steps, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
