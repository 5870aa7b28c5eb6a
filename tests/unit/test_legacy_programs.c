/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the verifier of Linux 4.19 requires of the programs for it. Later ones accept loops, so that loading
 * the programs on this kernel would not show one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <linux/bpf.h>

#include "legacy.skel.h"

#define MOST_INSTRUCTIONS 4096

enum visit { NEW, OPEN, DONE };

static bool is_jump(const struct bpf_insn *insn)
{
	uint8_t class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);

	return (class == BPF_JMP || class == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT;
}

static bool falls_through(const struct bpf_insn *insn)
{
	return insn->code != (BPF_JMP | BPF_JA) && insn->code != (BPF_JMP | BPF_EXIT);
}

/* The Nth instruction to which control goes from instruction AT; -1: no more. */
static long next_of(const struct bpf_insn *insns, long at, int n)
{
	long jump = is_jump(&insns[at]) ? at + 1 + insns[at].off : -1;
	long behind = falls_through(&insns[at]) ? at + 1 : -1;

	/* the second half of a load of 64 bits is no instruction */
	if (insns[at].code == (BPF_LD | BPF_DW | BPF_IMM))
		behind++;
	if (jump < 0)
		return n == 0 ? behind : -1;
	return n == 0 ? jump : n == 1 ? behind : -1;
}

/* Depth first, as the verifier does it: an edge to an instruction of the path to here closes a loop. */
static bool has_loop(const struct bpf_insn *insns, size_t n)
{
	enum visit *visited = calloc(n, sizeof(*visited));
	long *path = calloc(n + 1, sizeof(*path));
	int *edge = calloc(n + 1, sizeof(*edge));
	size_t depth = 1;
	bool loop = false;

	assert_true(visited && path && edge);
	visited[0] = OPEN;
	while (depth && !loop) {
		long to = next_of(insns, path[depth - 1], edge[depth - 1]++);

		if (to < 0) {
			visited[path[--depth]] = DONE;
			continue;
		}
		assert_true((size_t)to < n);
		loop = visited[to] == OPEN;
		if (visited[to] != NEW)
			continue;
		visited[to] = OPEN;
		path[depth] = to;
		edge[depth++] = 0;
	}
	free(visited);
	free(path);
	free(edge);
	return loop;
}

static void finds_loops(void **state)
{
	const struct bpf_insn straight[] = {
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .off = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	const struct bpf_insn backwards[] = {
		{ .code = BPF_JMP | BPF_JA, .off = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_JMP | BPF_JA, .off = -2 },
	};
	const struct bpf_insn around[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM },
		{ 0 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .off = -3 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	(void)state;
	assert_false(has_loop(straight, 3));
	assert_false(has_loop(backwards, 3));
	assert_true(has_loop(around, 4));
}

static void programs_have_no_loop(void **state)
{
	struct legacy_bpf *skel = legacy_bpf__open();
	struct bpf_program *prog;
	int programs = 0;

	(void)state;
	assert_non_null(skel);
	bpf_object__for_each_program(prog, skel->obj)
	{
		size_t n = bpf_program__insn_cnt(prog);

		print_message("%s: %zu instructions\n", bpf_program__name(prog), n);
		assert_in_range(n, 2, MOST_INSTRUCTIONS);
		assert_false(has_loop(bpf_program__insns(prog), n));
		programs++;
	}
	assert_int_equal(programs, 6);
	legacy_bpf__destroy(skel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_loops),
		cmocka_unit_test(programs_have_no_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
