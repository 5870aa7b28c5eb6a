/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "summary.h"

static void add_collective(struct nps_model *m, const char *name, const char *type, uint64_t ns)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(&m->comm_op.t, &row), 0);
	m->comm_op.name[row] = nps_strings__addz(m->strings, name);
	m->comm_op.type[row] = type ? nps_strings__addz(m->strings, type) : NPS_NONE;
	m->comm_op.start[row] = 1000;
	m->comm_op.end[row] = 1000 + ns;
}

/* Without types, as at level 0, names show what collectives are. */
static void collectives_by_type(void **state)
{
	struct nps_summary_proc proc;
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	add_collective(&m, "hcom_allReduce__576_0_1", "N/A", 10);
	add_collective(&m, "hcom_allReduce__576_1_1", NULL, 20);
	add_collective(&m, "hcom_allGather__576_0_1", "N/A", 500);
	add_collective(&m, "hcom_send__576_0_1", "hcom_send_", 7);
	add_collective(&m, "custom", "N/A", 1);
	assert_int_equal(nps_summary__fill(&proc, &m), 0);
	assert_string_equal(proc.top[0].name, "hcom_allGather_");
	assert_string_equal(proc.top[1].name, "hcom_allReduce_");
	assert_true(proc.top[1].count == 2 && proc.top[1].total_ns == 30);
	assert_string_equal(proc.top[2].name, "hcom_send_");
	assert_string_equal(proc.top[3].name, "custom");
	assert_string_equal(proc.top[4].name, "");
	nps_model__free(&m);
}

/* A total of what nobody measured is none, not 0. */
static void what_nobody_measured(void **state)
{
	struct nps_summary_proc proc;
	struct nps_summary summary = { .procs = &proc, .nprocs = 1 };
	char text[4096] = "";
	struct nps_model m;
	FILE *file;
	size_t row = 0;

	(void)state;
	assert_int_equal(nps_model__init(&m, AT_FDCWD, NULL), 0);
	for (int i = 0; i < 3; i++) { /* of Add one was measured, of Mul none */
		assert_int_equal(nps_table__add(&m.task.t, &row), 0);
		m.task.source[row] = i ? NPS_TIME_HOST_BOUNDS : NPS_TIME_DEVICE_LOG;
		m.task.start[row] = 1000;
		m.task.end[row] = i ? 1000 : 3000;
		assert_int_equal(nps_table__add(&m.compute.t, &row), 0);
		m.compute.task[row] = row;
		m.compute.name[row] = m.compute.type[row] =
			nps_strings__addz(m.strings, i == 2 ? "Mul" : "Add");
	}
	add_collective(&m, "hcom_send__576_0_1", "hcom_send_", 0);
	m.comm_op.tasks[0] = 1;
	assert_int_equal(nps_summary__fill(&proc, &m), 0);
	assert_true(proc.top[0].count == 2 && proc.top[0].measured == 1 && proc.top[0].total_ns == 2000);
	assert_true(proc.top[1].count == 1 && proc.top[1].measured == 0);
	file = fmemopen(text, sizeof(text), "w");
	assert_non_null(file);
	nps_summary_print(file, &summary);
	fclose(file);
	assert_non_null(strstr(text, "                                       2          2.000\n"));
	assert_non_null(strstr(text, "                                       1            N/A\n"));
	assert_null(strstr(text, " 0.000"));
	assert_non_null(
		strstr(text, "3 of these are in no total: their time on the device was not measured\n"));
	nps_model__free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(collectives_by_type),
					    cmocka_unit_test(what_nobody_measured) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
