/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/btf.h>
#include <cmocka.h>

#include "attach/preempt_count.h"

#define QUEUES 178752
#define COUNT 86064
#define HOT 1024

/* A kernel's types with the per-CPU variables that are given. */
static struct btf *kernel(int with_queues, int with_count, int with_hot)
{
	struct btf *btf = btf__new_empty();
	int number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED), task, inner, both, hot, rq;
	int vars[3] = { 0 };

	rq = btf__add_struct(btf, "rq", 64);
	/* struct pcpu_hot { union { struct { task *current_task; int preempt_count; }; int pad[16]; }; } */
	task = btf__add_ptr(btf, number);
	inner = btf__add_struct(btf, NULL, 16);
	btf__add_field(btf, "current_task", task, 0, 0);
	btf__add_field(btf, "preempt_count", number, 64, 0);
	both = btf__add_union(btf, NULL, 64);
	btf__add_field(btf, NULL, inner, 0, 0);
	btf__add_field(btf, "pad", number, 0, 0);
	hot = btf__add_struct(btf, "pcpu_hot", 64);
	btf__add_field(btf, NULL, both, 0, 0);
	if (with_hot)
		vars[0] = btf__add_var(btf, "pcpu_hot", BTF_VAR_GLOBAL_ALLOCATED, hot);
	if (with_count)
		vars[1] = btf__add_var(btf, "__preempt_count", BTF_VAR_GLOBAL_ALLOCATED, number);
	if (with_queues)
		vars[2] = btf__add_var(btf, "runqueues", BTF_VAR_GLOBAL_ALLOCATED, rq);
	assert_true(btf__add_datasec(btf, ".data..percpu", 0) > 0);
	for (int i = 0; i < 3; i++)
		if (vars[i])
			assert_int_equal(btf__add_datasec_var_info(btf, vars[i],
								   i == 0   ? HOT
								   : i == 1 ? COUNT
									    : QUEUES,
								   i == 1 ? 4 : 64),
					 0);
	return btf;
}

static void expect(struct btf *btf, int64_t offset)
{
	assert_int_equal(nps_preempt_count__offset(btf), offset);
	btf__free(btf);
}

static void offsets(void **state)
{
	(void)state;
	expect(kernel(1, 1, 0), COUNT - QUEUES);
	expect(kernel(1, 0, 1), HOT + 8 - QUEUES);
	expect(kernel(1, 1, 1), COUNT - QUEUES);
}

static void not_in_btf(void **state)
{
	(void)state;
	expect(kernel(0, 1, 1), 0);
	expect(kernel(1, 0, 0), 0);
	expect(btf__new_empty(), 0);
	expect(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(offsets), cmocka_unit_test(not_in_btf) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
