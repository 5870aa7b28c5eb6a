/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs in the kernel keep of the calls that a thread is in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef __always_inline
#define __always_inline inline
#include "../../bpf/call_stack.bpf.h"

#define POLLED NPS_GROUPS_COUNTED
#define DETAIL 3

static struct call_stack stack;

static int setup(void **state)
{
	(void)state;
	stack = (struct call_stack){ 0 };
	for (int i = 0; i < NPS_GROUPS; i++)
		group_state[i] = NPS_GROUP_ATTACHED;
	return 0;
}

/* As at the entry of a probed function; how many were dropped that never returned. */
static uint32_t enter(uint16_t probe, uint16_t group, uint64_t sp)
{
	uint32_t unreturned = stack_drop_dead(&stack, sp, probe);

	assert_true(stack.depth < NPS_MAX_DEPTH);
	stack.calls[stack.depth++] = (struct open_call){ .probe = probe, .group = group, .sp = sp };
	return unreturned;
}

static void calls_nest(void **state)
{
	(void)state;
	assert_int_equal(enter(NPS_PROBE_LAUNCH, 1, 1000), 0);
	assert_true(is_covered_above(&stack));
	assert_int_equal(enter(NPS_PROBE_RT_LAUNCH, 1, 900), 0);
	assert_int_equal(enter(NPS_PROBE_SQ_TASK_SEND, 1, 900), 0); /* by a jump at its end */
	assert_int_equal(stack.depth, 3);
	/* The two inner ones were left by an exception. */
	assert_int_equal(stack_drop_dead(&stack, 950, NPS_PROBE_RT_LAUNCH), 2);
	assert_int_equal(stack.depth, 1);
}

static void some_cover_nothing_inside(void **state)
{
	(void)state;
	assert_false(is_covered_above(&stack));
	enter(NPS_PROBE_MDL_EXECUTE, 1, 1000);
	assert_false(is_covered_above(&stack));
	enter(NPS_PROBE_LAUNCH, 1, 900);
	assert_true(is_covered_above(&stack));
}

/*
 * The job polls at the same height of its stack as it launches: only the group shows that the frame is dead.
 */
static void frames_of_detached_probes_hide_nothing(void **state)
{
	(void)state;
	enter(NPS_PROBE_QUERY_EVENT, POLLED, 1000);
	assert_int_equal(stack_drop_dead(&stack, 1000, NPS_PROBE_RT_LAUNCH), 0);
	assert_true(is_covered_above(&stack));

	/* Its return is still to be seen. */
	group_state[POLLED] = NPS_GROUP_CLOSING;
	assert_int_equal(stack_drop_dead(&stack, 900, NPS_PROBE_RT_LAUNCH), 0);
	assert_int_equal(stack.depth, 1);
	assert_true(is_covered_above(&stack));

	group_state[POLLED] = NPS_GROUP_DETACHED;
	assert_true(call_is_detached(&stack.calls[0]));
	assert_false(is_covered_above(&stack));
	/* That it did not return is no loss. */
	assert_int_equal(stack_drop_dead(&stack, 900, NPS_PROBE_RT_LAUNCH), 0);
	assert_int_equal(stack.depth, 0);
}

/* Below one that goes on. */
static void frames_in_the_middle_wait(void **state)
{
	(void)state;
	enter(NPS_PROBE_GET_MEM_INFO, DETAIL, 1000);
	enter(NPS_PROBE_MDL_EXECUTE, 1, 900);
	group_state[DETAIL] = NPS_GROUP_DETACHED;
	assert_int_equal(stack_drop_dead(&stack, 800, NPS_PROBE_RT_LAUNCH), 0);
	assert_int_equal(stack.depth, 2);
	assert_false(is_covered_above(&stack));
	enter(NPS_PROBE_LAUNCH, 1, 800);
	assert_true(is_covered_above(&stack));
}

/* However full it is of them. */
static void frames_of_detached_probes_make_room(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < NPS_MAX_DEPTH; i++)
		enter(NPS_PROBE_QUERY_EVENT, POLLED + i, 1000 - i);
	for (unsigned int i = 0; i < NPS_MAX_DEPTH; i++)
		group_state[POLLED + i] = NPS_GROUP_DETACHED;
	assert_int_equal(enter(NPS_PROBE_LAUNCH, 1, 100), 0);
	assert_int_equal(stack.depth, 1);
}

/* By a return: the innermost call of the function at that height, and how many inside it are over. */
static void calls_are_found_by_their_returns(void **state)
{
	(void)state;
	assert_null(find_call(&stack, 1000, NPS_PROBE_LAUNCH));
	enter(NPS_PROBE_LAUNCH, 1, 1000);
	enter(NPS_PROBE_QUERY_EVENT, POLLED, 900);
	enter(NPS_PROBE_RT_LAUNCH, 1, 800);
	assert_null(find_call(&stack, 1000, NPS_PROBE_RT_LAUNCH));
	assert_ptr_equal(find_call(&stack, 800, NPS_PROBE_RT_LAUNCH), &stack.calls[2]);
	assert_int_equal(stack.found, 2);
	assert_int_equal(stack.passed, 0);
	assert_ptr_equal(find_call(&stack, 1000, NPS_PROBE_LAUNCH), &stack.calls[0]);
	assert_int_equal(stack.found, 0);
	assert_int_equal(stack.passed, 2);
	/* That one whose probe is detached did not return is no loss. */
	group_state[POLLED] = NPS_GROUP_DETACHED;
	assert_ptr_equal(find_call(&stack, 1000, NPS_PROBE_LAUNCH), &stack.calls[0]);
	assert_int_equal(stack.passed, 1);
	for (unsigned int i = stack.depth; i < NPS_MAX_DEPTH; i++)
		enter(NPS_PROBE_LAUNCH, 1, 700 - i);
	assert_int_equal(stack.depth, NPS_MAX_DEPTH);
	assert_ptr_equal(find_call(&stack, 1000, NPS_PROBE_LAUNCH), &stack.calls[0]);
	assert_ptr_equal(find_call(&stack, 700 - (NPS_MAX_DEPTH - 1), NPS_PROBE_LAUNCH),
			 &stack.calls[NPS_MAX_DEPTH - 1]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(calls_nest),
		TEST(some_cover_nothing_inside),
		TEST(frames_of_detached_probes_hide_nothing),
		TEST(frames_in_the_middle_wait),
		TEST(frames_of_detached_probes_make_room),
		TEST(calls_are_found_by_their_returns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
