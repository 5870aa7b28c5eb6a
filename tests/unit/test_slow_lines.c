/* SPDX-License-Identifier: BSD-2-Clause */
/* Which line of Python is named, in models whose answer is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <string.h>

#include "findings/slow_lines.h"

#define MS 1000000ULL
#define T0 (1700000000ULL * 1000000000ULL)
#define MAIN ((7ULL << 32) | 8)
#define OTHER ((7ULL << 32) | 9)
#define PACKAGE ";/usr/lib/python3/dist-packages/torch/x.py(5): forward"

static int tmpfd;

static uint32_t text(struct nps_model *m, const char *what)
{
	return nps_strings__addz(m->strings, what);
}

static size_t new_row(struct nps_table *table)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(table, &row), 0);
	return row;
}

/* Step I begins at 100 ms times I, and lasts 10 ms, or SLOW ms if it is every fifth. */
static void begin(struct nps_model *m, uint64_t slow)
{
	size_t row;

	assert_int_equal(nps_model__init(m, tmpfd, NULL), 0);
	m->start = T0;
	m->end = T0 + 2000 * MS;
	for (size_t i = 0; i < 20; i++) {
		row = new_row(&m->step.t);
		m->step.id[row] = (int64_t)i;
		m->step.start[row] = T0 + 100 * i * MS;
		m->step.end[row] = m->step.start[row] + (i % 5 ? 10 : slow) * MS;
	}
	row = new_row(&m->torch.t); /* so that the thread is one that calls operators */
	m->torch.type[row] = NPS_API_TORCH_OP;
	m->torch.callchain[row] = 0;
	m->torch.gtid[row] = MAIN;
	m->torch.name[row] = text(m, "aten::add");
}

static void add_sample(struct nps_model *m, uint64_t gtid, uint64_t start, uint64_t end, bool slept,
		       const char *frames)
{
	size_t row = new_row(&m->py_sample.t);

	m->py_sample.start[row] = T0 + start * MS;
	m->py_sample.end[row] = T0 + end * MS;
	m->py_sample.gtid[row] = gtid;
	m->py_sample.slept[row] = slept;
	m->py_sample.frames[row] = text(m, frames);
}

static void add_kernel(struct nps_model *m, uint64_t start, uint64_t end, const char *frames)
{
	uint32_t connection = (uint32_t)m->task.t.len + 1;
	size_t row = new_row(&m->task.t), task;

	m->task.start[row] = T0 + start * MS;
	m->task.end[row] = T0 + end * MS;
	m->task.connection[row] = connection;
	m->task.class[row] = NPS_CLASS_COMPUTE;
	m->task.step[row] = NPS_NONE;
	m->task.name[row] = m->task.type[row] = text(m, "kernel");
	task = row;
	row = new_row(&m->compute.t);
	m->compute.task[row] = (uint32_t)task;
	m->compute.name[row] = m->compute.type[row] = m->compute.core[row] = text(m, "kernel");
	m->compute.input_shapes[row] = NPS_NONE;
	row = new_row(&m->py_launch.t);
	m->py_launch.connection[row] = connection;
	m->py_launch.frames[row] = m->py_launch.line[row] = text(m, frames);
}

static const char *first_id(const cJSON *d, const char **line)
{
	const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(d, "findings"), 0);
	const cJSON *where = cJSON_GetObjectItem(first, "where");

	*line = where ? cJSON_GetStringValue(cJSON_GetObjectItem(where, "line")) : NULL;
	return first ? cJSON_GetStringValue(cJSON_GetObjectItem(first, "id")) : "";
}

static double first_number(const cJSON *d, const char *name)
{
	const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(d, "findings"), 0);

	return cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(first, "numbers"), name));
}

static void expect_line(struct nps_model *m, const char *expected)
{
	cJSON *d = nps_findings__make(m);
	const char *line;

	assert_non_null(d);
	if (expected) {
		assert_string_equal(first_id(d, &line), NPS_FIND_SLOW_STEPS);
		assert_string_equal(line, expected);
	} else {
		assert_string_not_equal(first_id(d, &line), NPS_FIND_SLOW_STEPS);
	}
	cJSON_Delete(d);
	nps_model__free(m);
}

static void test_own_line(void **state)
{
	static const char *const stacks[][2] = {
		{ "a.py(1): f;b.py(2): g", "b.py(2): g" },
		{ "a.py(1): f" PACKAGE, "a.py(1): f" },
		{ "a.py(1): f;/usr/lib/python3.11/random.py(7): shuffle", "a.py(1): f" },
		{ "/x/site-packages/m.py(1): f;<string>(2): g", "<string>(2): g" },
		{ "[cut];<frozen x>(1): f;a.py(3): h", "a.py(3): h" },
		{ "a.py(1): f", "a.py(1): f" },
		{ "", "" },
	};
	const char *line;
	size_t len;

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(stacks); i++) {
		len = nps_slow_lines__own(stacks[i][0], &line);
		assert_int_equal(len, strlen(stacks[i][1]));
		assert_memory_equal(line, stacks[i][1], len);
	}
}

/* What the launching thread sleeps in slow steps; not what others do, or what it waits for the NPU. */
static void test_sleeping(void **state)
{
	struct nps_model m;
	const char *line;
	cJSON *d;

	(void)state;
	begin(&m, 60);
	for (uint64_t i = 0; i < 20; i++) {
		add_kernel(&m, 100 * i + 7, 100 * i + 9, "a.py(1): main" PACKAGE);
		add_sample(&m, OTHER, 100 * i, 100 * i + 99, true, "a.py(90): loader");
		add_sample(&m, MAIN, 100 * i + 7, 100 * i + 9, true, "a.py(70): wait");
		if (i % 5)
			add_sample(&m, MAIN, 100 * i, 100 * i + 1, true, "a.py(3): read");
		else
			add_sample(&m, MAIN, 100 * i + 10, 100 * i + 50, true, "a.py(3): read");
	}
	d = nps_findings__make(&m);
	assert_string_equal(first_id(d, &line), NPS_FIND_SLOW_STEPS);
	assert_string_equal(line, "a.py(3): read");
	assert_true(first_number(d, "slow_steps") == 4);
	assert_true(first_number(d, "lost_us") == 4 * 50e3);
	assert_true(first_number(d, "line_in_slow_steps_us") == 4 * 40e3);
	assert_true(first_number(d, "line_in_other_steps_us") == 16 * 1e3);
	assert_true(first_number(d, "line_more_us") == 4 * 39e3);
	assert_true(first_number(d, "sleeps") == 4 && first_number(d, "samples") == 0);
	cJSON_Delete(d);
	nps_model__free(&m);
}

/* A kernel that is long in the slow steps, of a line whose kernels are short in others. */
static void test_device(void **state)
{
	struct nps_model m;

	(void)state;
	begin(&m, 60);
	for (uint64_t i = 0; i < 20; i++) {
		add_kernel(&m, 100 * i + 1, 100 * i + 5, "a.py(1): main" PACKAGE);
		add_kernel(&m, 100 * i + 6, 100 * i + (i % 5 ? 7 : 50), "a.py(2): attend" PACKAGE);
		add_sample(&m, MAIN, 100 * i + 6, 100 * i + (i % 5 ? 7 : 50), true, "a.py(9): item");
	}
	expect_line(&m, "a.py(2): attend");
}

/* Samples of the clock: three are evidence, two are none. */
static void test_running(void **state)
{
	struct nps_model m;

	(void)state;
	for (int n = 2; n <= 3; n++) {
		begin(&m, 60);
		for (uint64_t i = 0; i < 20; i++)
			add_kernel(&m, 100 * i + 1, 100 * i + 2, "a.py(1): main");
		for (int k = 0; k < n; k++)
			add_sample(&m, MAIN, 500 * (uint64_t)k + 5, 500 * (uint64_t)k + 50, false,
				   "a.py(4): augment");
		expect_line(&m, n == 3 ? "a.py(4): augment" : NULL);
	}
}

/* Lines that explain too little are not named; nor is one that takes as long in other steps. */
static void test_no_evidence(void **state)
{
	struct nps_model m;

	(void)state;
	begin(&m, 60);
	for (uint64_t i = 0; i < 20; i++) {
		add_kernel(&m, 100 * i + 1, 100 * i + 2, "a.py(1): main");
		add_sample(&m, MAIN, 100 * i + 3, 100 * i + 9, true, "a.py(3): read");
		if (i % 5 == 0)
			add_sample(&m, MAIN, 100 * i + 10, 100 * i + 20, true, "a.py(5): log");
	}
	expect_line(&m, NULL);
}

/* Steps that overlap, and one that is within a kernel: nothing is counted without bound. */
static void test_odd_steps(void **state)
{
	struct nps_model m;
	cJSON *d;

	(void)state;
	begin(&m, 60);
	for (size_t i = 0; i < m.step.t.len; i++)
		m.step.end[i] = m.end;
	add_kernel(&m, 0, 2000, "");
	add_sample(&m, MAIN, 0, 2000, true, "");
	d = nps_findings__make(&m);
	assert_non_null(d);
	cJSON_Delete(d);
	nps_model__free(&m);
}

static int open_directory(void **state)
{
	(void)state;
	tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tmpfd < 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_line),    cmocka_unit_test(test_sleeping),
		cmocka_unit_test(test_device),	    cmocka_unit_test(test_running),
		cmocka_unit_test(test_no_evidence), cmocka_unit_test(test_odd_steps),
	};

	return cmocka_run_group_tests(tests, open_directory, NULL);
}
