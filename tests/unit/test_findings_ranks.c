/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks whose collectives begin at known distances. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "findings/ranks.h"

#define US 1000ULL
#define T0 (1700000000ULL * 1000000000ULL)
#define RANKS 3
#define OPS 100
#define AHEAD (7000 * (int64_t)US) /* of rank 2's clock */

static int tmpfd;

static size_t new_row(struct nps_table *table)
{
	size_t row = 0;

	assert_int_equal(nps_table__add(table, &row), 0);
	return row;
}

static void add_op(struct nps_model *m, const char *name, const char *group, uint64_t start, uint64_t end)
{
	size_t row = new_row(&m->comm_op.t);

	m->comm_op.name[row] = nps_strings__addz(m->strings, name);
	m->comm_op.group[row] = nps_strings__addz(m->strings, group);
	m->comm_op.start[row] = start;
	m->comm_op.end[row] = end;
}

static void add_step(struct nps_model *m, const char *name, double computing)
{
	size_t row = new_row(&m->step_trace.t);

	m->step_trace.step[row] = nps_strings__addz(m->strings, name);
	m->step_trace.computing[row] = computing;
	m->step_trace.free[row] = 1000 - computing;
}

static double number(const cJSON *object, const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const cJSON *row_of(const cJSON *document, const char *list, int i)
{
	return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(document, list), i);
}

/* The names repeat after ten, as they do in graphs; rank 2 has another clock and an operator of its own. */
static void fill(struct nps_model *m, uint32_t rank)
{
	char name[64], step[16];

	assert_int_equal(nps_model__init(m, tmpfd, NULL), 0);
	m->has_rank = true;
	m->rank = rank;
	m->start = T0;
	m->end = T0 + OPS * 1000 * US;
	if (rank == 2)
		add_op(m, "hcom_send__9_0_1", "pair", T0, T0 + 5);
	for (uint64_t i = 0; i < OPS; i++) {
		uint64_t at = T0 + i * 1000 * US + (rank == 2 ? AHEAD : 0);
		uint64_t late = rank == 1 ? 300 + i : rank == 2 ? 20 : 0; /* us */

		snprintf(name, sizeof(name), "hcom_allReduce__1_%llu_1", (unsigned long long)i % 10);
		add_op(m, name, "world", at + late * US, at + 900 * US);
	}
	for (int i = 0; i < 3; i++) {
		snprintf(step, sizeof(step), "%d", i);
		add_step(m, step, rank == 1 ? 800 : 500 + i);
	}
}

static void add_rank(struct nps_ranks *ranks, uint32_t rank, bool steps)
{
	struct nps_model m;

	fill(&m, rank);
	if (!steps)
		m.step_trace.t.len = 0;
	assert_int_equal(nps_ranks__add(ranks, &m, "dir"), 0);
	nps_model__free(&m);
}

static void test_slow_rank(void **state)
{
	static const double late[RANKS] = { 0, 300 * OPS + 99 * 100 / 2., 20 * OPS };
	struct nps_ranks ranks;
	const cJSON *worst, *found;
	double all = late[1], step;
	cJSON *d;

	(void)state;
	nps_ranks__init(&ranks, tmpfd);
	for (uint32_t i = 0; i < RANKS; i++) {
		add_rank(&ranks, i, true);
		if (!i) {
			assert_int_equal(nps_ranks__compare(&ranks, &d), 0);
			assert_null(d); /* one is none */
		}
	}
	assert_int_equal(nps_ranks__compare(&ranks, &d), 0);
	assert_non_null(d);
	for (int i = 0; i < RANKS; i++) {
		const cJSON *row = row_of(d, "rows", i);

		assert_true(number(row, "common_collectives") == OPS);
		assert_true(fabs(number(row, "late_us") - late[i]) < 0.01);
		assert_true(fabs(number(row, "wait_us") - (all - late[i])) < 0.01);
		assert_true(number(row, "last_in") == (i == 1 ? OPS : 0));
		assert_true(number(row, "clock_offset_us") == (i == 2 ? AHEAD / 1e3 : 0));
	}
	assert_true(number(cJSON_GetObjectItemCaseSensitive(d, "arrivals"), "max_skew_us") == 399);
	assert_true(fabs(number(cJSON_GetObjectItemCaseSensitive(d, "arrivals"), "mean_skew_us") -
			 all / OPS) < 0.01);
	worst = row_of(cJSON_GetObjectItemCaseSensitive(d, "arrivals"), "worst", 0);
	assert_true(number(worst, "skew_us") == 399);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(worst, "last")), "rank 1");
	for (int i = 1; i < 20; i++) { /* the worst first */
		worst = row_of(cJSON_GetObjectItemCaseSensitive(d, "arrivals"), "worst", i);
		assert_true(number(worst, "skew_us") == 399 - i);
	}
	step = number(row_of(d, "steps", 0), "most_computing_us");
	assert_true(step == 800);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row_of(d, "steps", 0),
										  "most_computing_us_by")),
			    "rank 1");
	found = row_of(d, "findings", 0);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(found, "id")), "slow_rank");
	assert_true(strstr(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(found, "title")),
			   "rank 1") != NULL);
	found = row_of(d, "findings", 1);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(found, "id")),
			    "uneven_computing");
	cJSON_Delete(d);
	nps_ranks__free(&ranks);
}

/* Collectives 1 ms apart, more or less; a capture that begins with FIRST numbers them from there. */
static void fill_from(struct nps_model *m, uint32_t rank, uint64_t first, const char *host)
{
	char name[64];

	assert_int_equal(nps_model__init(m, tmpfd, NULL), 0);
	m->pid = 100 + rank;
	m->host_uid = host ? nps_strings__addz(m->strings, host) : NPS_NONE;
	m->start = T0;
	m->end = T0 + OPS * 1000 * US;
	for (uint64_t i = first; i < OPS; i++) {
		uint64_t at = T0 + (i * 1000 + i * 37 % 7 * 20) * US;

		snprintf(name, sizeof(name), "hcom_%s__1_%llu_1", i % 3 ? "allReduce" : "allGather",
			 (unsigned long long)(i - first));
		add_op(m, name, "world", at + rank * 2 * US, at + 100 * US);
	}
}

static cJSON *compare_two(const struct nps_model *a, const struct nps_model *b)
{
	struct nps_ranks ranks;
	cJSON *d;

	nps_ranks__init(&ranks, tmpfd);
	assert_int_equal(nps_ranks__add(&ranks, a, "dir"), 0);
	assert_int_equal(nps_ranks__add(&ranks, b, "dir"), 0);
	assert_int_equal(nps_ranks__compare(&ranks, &d), 0);
	assert_non_null(d);
	nps_ranks__free(&ranks);
	return d;
}

/*
 * Captures of one host that do not begin at once: equal names are not the
 * same collectives, but ends show which are.
 */
static void test_later_capture(void **state)
{
	static const struct {
		uint64_t first[2];
	} cases[] = { { { 0, 1 } }, { { 3, 0 } }, { { 0, 80 } }, { { 7, 7 } } };

	(void)state;
	for (size_t i = 0; i < NPS_ARRAY_SIZE(cases); i++) {
		uint64_t common = OPS - NPS_MAX(cases[i].first[0], cases[i].first[1]);
		struct nps_model a, b;
		cJSON *d;

		fill_from(&a, 0, cases[i].first[0], "5");
		fill_from(&b, 1, cases[i].first[1], "5");
		d = compare_two(&a, &b);
		assert_true(number(row_of(d, "rows", 1), "common_collectives") == (double)common);
		assert_true(number(row_of(d, "rows", 1), "collectives_not_matched") == 0);
		assert_true(number(row_of(d, "rows", 1), "clock_offset_us") == 0);
		assert_true(number(row_of(d, "rows", 1), "late_us") == 2 * (double)common);
		assert_true(number(row_of(d, "rows", 0), "late_us") == 0);
		assert_string_equal(
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row_of(d, "rows", 1), "rank")),
			"dir process 101"); /* the other one has the same path */
		assert_null(row_of(d, "findings", 0));
		cJSON_Delete(d);
		nps_model__free(&a);
		nps_model__free(&b);
	}
}

/* Nothing is reported where equal names are other collectives, and none fits: no late rank, no clock. */
static void test_no_match(void **state)
{
	(void)state;
	for (int one_host = 0; one_host < 2; one_host++) {
		struct nps_model a, b;
		cJSON *d;

		fill_from(&a, 0, 0, one_host ? "5" : NULL);
		fill_from(&b, 1, 1, one_host ? "5" : NULL);
		for (size_t i = 0; i < b.comm_op.t.len; i++) {
			uint64_t off = (300 + i * 53 % 11 * 40) * US;

			b.comm_op.name[i] =
				nps_strings__addz(b.strings, nps_model__text(&a, a.comm_op.name[i]));
			b.comm_op.start[i] += off;
			b.comm_op.end[i] += off;
		}
		d = compare_two(&a, &b);
		assert_true(number(row_of(d, "rows", 1), "common_collectives") == 0);
		assert_true(number(row_of(d, "rows", 1), "collectives_not_matched") == OPS - 1);
		assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(row_of(d, "rows", 1), "late_us")));
		assert_true(number(row_of(d, "rows", 1), "clock_offset_us") == 0);
		assert_null(row_of(d, "findings", 0));
		cJSON_Delete(d);
		nps_model__free(&a);
		nps_model__free(&b);
	}
}

/* Ranks without anything in common, and times without sense. */
static void test_hostile(void **state)
{
	struct nps_ranks ranks;
	cJSON *d;

	(void)state;
	nps_ranks__init(&ranks, tmpfd);
	for (int i = 0; i < 3; i++) {
		struct nps_model m;

		assert_int_equal(nps_model__init(&m, tmpfd, NULL), 0);
		m.host_uid = nps_strings__addz(m.strings, "5");
		add_op(&m, i ? "x" : "y", "g", UINT64_MAX, 0);
		add_op(&m, "z", "g", i, UINT64_MAX);
		add_op(&m, "z", "g", 9, 2);
		for (int k = 0; k < 20; k++)
			add_op(&m, "same", "Group 3", i ? UINT64_MAX - k : (uint64_t)k, i ? 5 : UINT64_MAX);
		if (i)
			add_step(&m, "", (double)NAN);
		assert_int_equal(nps_ranks__add(&ranks, &m, "a\033b"), 0);
		nps_model__free(&m);
	}
	assert_int_equal(nps_ranks__compare(&ranks, &d), 0);
	assert_non_null(d);
	cJSON_Delete(d);
	nps_ranks__free(&ranks);
}

/* The steps of the others are compared. */
static void test_rank_without_steps(void **state)
{
	struct nps_ranks ranks;
	cJSON *d;

	(void)state;
	nps_ranks__init(&ranks, tmpfd);
	for (uint32_t i = 0; i < RANKS; i++)
		add_rank(&ranks, i, i != 1);
	assert_int_equal(nps_ranks__compare(&ranks, &d), 0);
	assert_non_null(row_of(d, "steps", 2));
	cJSON_Delete(d);
	nps_ranks__free(&ranks);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_rank),	   cmocka_unit_test(test_later_capture),
		cmocka_unit_test(test_no_match),	   cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_rank_without_steps),
	};
	int failed;

	tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tmpfd < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	close(tmpfd);
	return failed;
}
