/* SPDX-License-Identifier: BSD-2-Clause */
/* The C++ functions that a thread is in, as the programs in the kernel pair their entries with their ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef __always_inline
#define __always_inline inline
#include "../../bpf/op_stack.bpf.h"

#define ADD 1
#define MUL 2
#define FRAME 64 /* bytes below the stack pointer of the entry while a function runs */

static struct op_stack stack;

static int setup(void **state)
{
	(void)state;
	stack = (struct op_stack){ 0 };
	return 0;
}

/* Enters a function; how many calls turned out to be over. */
static uint32_t enter(uint16_t number, uint64_t sp)
{
	uint32_t over;

	ops_at_entry(&stack, sp);
	over = stack.depth - stack.found;
	stack.depth = stack.found;
	assert_true(stack.depth < OP_DEPTH);
	stack.ops[stack.depth++] =
		(struct open_op){ .probe = NPS_PROBE_TORCH_OP, .number = number, .sp = sp };
	return over;
}

/* Ends it; how many calls within it turned out to be over, -1: it is not known. */
static int end(uint16_t number, uint64_t sp)
{
	int over;

	ops_at_end(&stack, sp, NPS_PROBE_TORCH_OP, number);
	if (stack.found == OP_DEPTH)
		return -1;
	over = (int)(stack.depth - stack.found) - 1;
	stack.depth = stack.found;
	return over;
}

static void calls_nest(void **state)
{
	(void)state;
	assert_int_equal(enter(ADD, 1000), 0);
	assert_int_equal(enter(MUL, 900), 0);
	assert_int_equal(enter(ADD, 800), 0);
	assert_int_equal(end(ADD, 800 - FRAME), 0);
	assert_int_equal(enter(ADD, 800), 0); /* the next one from the same caller */
	assert_int_equal(end(ADD, 800 - FRAME), 0);
	assert_int_equal(end(MUL, 900 - FRAME), 0);
	assert_int_equal(end(ADD, 1000 - FRAME), 0);
	assert_int_equal(stack.depth, 0);
}

/* It is over when its caller, or whoever caught the exception, calls the next one. */
static void exceptions_end_calls(void **state)
{
	(void)state;
	enter(ADD, 1000);
	enter(MUL, 900);
	enter(MUL, 800);
	assert_int_equal(enter(ADD, 950), 2);
	assert_int_equal(end(ADD, 950 - FRAME), 0);
	enter(MUL, 900);
	enter(MUL, 800);
	assert_int_equal(end(ADD, 1000 - FRAME), 2); /* caught in the function that ends now */
	assert_int_equal(stack.depth, 0);
	enter(ADD, 1000);
	assert_int_equal(enter(ADD, 1000), 1); /* the same function again, from the same caller */
}

static void ends_without_a_beginning(void **state)
{
	(void)state;
	assert_int_equal(end(ADD, 900), -1);
	enter(MUL, 1000);
	assert_int_equal(end(ADD, 900), -1); /* within MUL, which goes on */
	assert_int_equal(stack.depth, 1);
	assert_int_equal(end(MUL, 1000 - FRAME), 0);
}

/* At its return instruction the frame does not exist any more, and what it called was at lower addresses. */
static void ends_at_the_return(void **state)
{
	(void)state;
	enter(ADD, 1000);
	enter(MUL, 900);
	assert_int_equal(end(ADD, 1000), 1);
	assert_int_equal(stack.depth, 0);
}

static void recursion(void **state)
{
	(void)state;
	for (int i = 0; i < OP_DEPTH; i++)
		assert_int_equal(enter(ADD, 100000 - 100 * i), 0);
	ops_at_entry(&stack, 1000);
	assert_int_equal(stack.found, OP_DEPTH); /* full: the caller counts it as lost */
	assert_int_equal(end(ADD, 100000 - 100 * (OP_DEPTH - 3) - FRAME), 2);
	for (int i = OP_DEPTH - 4; i >= 0; i--)
		assert_int_equal(end(ADD, 100000 - 100 * i - FRAME), 0);
	assert_int_equal(stack.depth, 0);
}

/* A coroutine, whose stack is at higher addresses, calls operators while the thread is in one. */
static void another_stack(void **state)
{
	uint64_t other = 1000 + NPS_SAME_STACK;

	(void)state;
	enter(ADD, 1000);
	assert_int_equal(enter(MUL, other), 0);
	assert_int_equal(end(MUL, other - FRAME), 0);
	assert_int_equal(end(ADD, 1000 - FRAME), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(calls_nest, setup),
		cmocka_unit_test_setup(exceptions_end_calls, setup),
		cmocka_unit_test_setup(ends_without_a_beginning, setup),
		cmocka_unit_test_setup(ends_at_the_return, setup),
		cmocka_unit_test_setup(recursion, setup),
		cmocka_unit_test_setup(another_stack, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
