/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/model.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int tmpfd;

static int open_tmp(void **state)
{
	(void)state;
	tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tmpfd < 0;
}

static int close_tmp(void **state)
{
	(void)state;
	return close(tmpfd);
}

/* Cells keep their values when columns move from memory into files, and when they were let go. */
static void test_grows(void **state)
{
	struct nps_model m;
	size_t row = 0, n = 300000;

	(void)state;
	assert_int_equal(nps_model__init(&m, tmpfd, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(nps_table__add(&m.memcpy.t, &row), 0);
		assert_int_equal(row, i);
		assert_int_equal(m.memcpy.size[row], 0);
		m.memcpy.task[row] = i;
		m.memcpy.size[row] = -(int64_t)i;
		m.memcpy.operation[row] = i % 7;
	}
	nps_model__cool(&m);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(m.memcpy.task[i], i);
		assert_int_equal(m.memcpy.size[i], -(int64_t)i);
		assert_int_equal(m.memcpy.operation[i], i % 7);
	}
	nps_model__free(&m);
}

/* Rows that come back after a table was shortened are zeros. */
static void test_resize(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, tmpfd, NULL), 0);
	assert_int_equal(nps_table__resize(&m.step.t, 100), 0);
	for (size_t i = 0; i < 100; i++)
		m.step.id[i] = 7;
	assert_int_equal(nps_table__resize(&m.step.t, 10), 0);
	assert_int_equal(nps_table__resize(&m.step.t, 50), 0);
	assert_int_equal(m.step.id[9], 7);
	for (size_t i = 10; i < 50; i++)
		assert_int_equal(m.step.id[i], 0);
	nps_model__free(&m);
}

/* Columns of every table are distinct and large enough for their kind. */
static void test_columns(void **state)
{
	struct nps_model m;
	size_t row;

	(void)state;
	assert_int_equal(nps_model__init(&m, tmpfd, NULL), 0);
	assert_int_equal(nps_table__add(&m.task.t, &row), 0);
	for (uint32_t i = 0; i < m.task.t.ncolumns; i++)
		memset(nps_table__cells(&m.task.t, i), (int)i + 1, m.task.t.columns[i].size);
	for (uint32_t i = 0; i < m.task.t.ncolumns; i++)
		assert_int_equal(*(unsigned char *)nps_table__cells(&m.task.t, i), i + 1);
	assert_ptr_equal(m.task.start, nps_table__cells(&m.task.t, 0));
	assert_ptr_equal(m.nic.function, nps_table__cells(&m.nic.t, m.nic.t.ncolumns - 1));
	nps_model__free(&m);
}

/* Losses of the same kind are one line, and the count does not wrap. */
static void test_losses(void **state)
{
	struct nps_model m;

	(void)state;
	assert_int_equal(nps_model__init(&m, tmpfd, NULL), 0);
	nps_model__lost(&m, 0, "nothing");
	nps_model__lost(&m, 2, "records of %s", "a");
	nps_model__lost(&m, UINT64_MAX, "records of %s", "a");
	nps_model__lost(&m, 1, "records of %s", "b");
	assert_int_equal(m.losses.len, 2);
	assert_int_equal(NPS_AT(&m.losses, struct nps_lost, 0).count, UINT64_MAX);
	nps_model__free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_grows), cmocka_unit_test(test_resize),
					    cmocka_unit_test(test_columns), cmocka_unit_test(test_losses) };

	return cmocka_run_group_tests(tests, open_tmp, close_tmp);
}
