/* SPDX-License-Identifier: BSD-2-Clause */
/* GROUP BY, held against a list that is searched from the front. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "derive/group_by.h"

#define ROWS 20000
#define GROUPS 512

struct element {
	struct nps_group group;
	uint64_t own;
};

struct expected {
	uint64_t key, sub, count, measured, total, least, most;
	size_t longest;
};

static struct nps_model model;

static int setup(void **state)
{
	(void)state;
	model.tmpfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return model.tmpfd < 0;
}

static int teardown(void **state)
{
	(void)state;
	return close(model.tmpfd);
}

static void add_expected(struct expected *list, size_t *n, uint64_t key, uint64_t sub, bool measured,
			 uint64_t ns, size_t row)
{
	struct expected *e = list;

	while (e < list + *n && (e->key != key || e->sub != sub))
		e++;
	if (e == list + *n) {
		assert_true(*n < GROUPS);
		*e = (struct expected){ .key = key, .sub = sub, .least = UINT64_MAX, .longest = row };
		++*n;
	}
	e->count++;
	if (!measured)
		return;
	if (!e->measured++ || ns > e->most) {
		e->most = ns;
		e->longest = row;
	}
	e->least = NPS_MIN(e->least, ns);
	e->total += ns;
}

static void test_sums(void **state)
{
	static struct expected list[GROUPS];
	struct nps_group_by groups;
	unsigned int seed = 1;
	uint64_t key = 0, sub = 0;
	size_t n = 0;

	(void)state;
	nps_group_by__init(&groups, &model, sizeof(struct element));
	for (size_t row = 0; row < ROWS; row++) {
		bool measured = rand_r(&seed) % 5;
		uint64_t ns = (uint64_t)rand_r(&seed) % 1000;
		struct element *e;

		if (rand_r(&seed) % 3) { /* runs, as traces have them */
			key = (uint64_t)rand_r(&seed) % 20;
			sub = (uint64_t)rand_r(&seed) % 20 << 40;
		}
		e = nps_group_by__get(&groups, key, sub);
		assert_non_null(e);
		assert_int_equal(e->own, e->group.count);
		if (measured)
			nps_group__add(&e->group, ns, row);
		else
			nps_group__count(&e->group, row);
		e->own++;
		add_expected(list, &n, key, sub, measured, ns, row);
	}
	assert_int_equal(nps_group_by__len(&groups), n);
	for (size_t i = 0; i < n; i++) {
		const struct element *e = nps_group_by__at(&groups, i);

		assert_ptr_equal(nps_group_by__find(&groups, list[i].key, list[i].sub), e);
		assert_int_equal(e->group.key, list[i].key);
		assert_int_equal(e->group.sub, list[i].sub);
		assert_int_equal(e->group.count, list[i].count);
		assert_int_equal(e->group.measured, list[i].measured);
		assert_int_equal(e->group.total, list[i].total);
		assert_int_equal(e->group.longest, list[i].longest);
		if (list[i].measured) {
			assert_int_equal(e->group.least, list[i].least);
			assert_int_equal(e->group.most, list[i].most);
		}
	}
	assert_null(nps_group_by__find(&groups, 99, 99));
	nps_group_by__sort(&groups, nps_group__by_total);
	for (size_t i = 1; i < n; i++) {
		const struct element *before = nps_group_by__at(&groups, i - 1),
				     *e = nps_group_by__at(&groups, i);

		assert_true(before->group.total >= e->group.total);
		if (before->group.total == e->group.total)
			assert_true(before->group.key < e->group.key ||
				    (before->group.key == e->group.key && before->group.sub < e->group.sub));
	}
	nps_group_by__free(&groups);
}

/* Keys of one hash are distinguished: that of (a, b) is found for another pair by trying. */
static void test_same_hash(void **state)
{
	struct nps_group_by groups;
	struct nps_group *first, *second;
	uint64_t hash = nps_hash2(1, 2);

	(void)state;
	nps_group_by__init(&groups, &model, sizeof(struct nps_group));
	/* As if (7, 7) had the hash of (1, 2). */
	first = nps_group_by__get(&groups, 7, 7);
	assert_non_null(first);
	assert_int_equal(nps_map__put(&groups.of, hash, 0), 0);
	second = nps_group_by__get(&groups, 1, 2);
	assert_non_null(second);
	assert_int_equal(nps_group_by__len(&groups), 2);
	assert_int_equal(second->key, 1);
	nps_group__add(second, 5, 0);
	second = nps_group_by__get(&groups, 7, 7);
	assert_int_equal(second->count, 0);
	second = nps_group_by__get(&groups, 1, 2);
	assert_int_equal(second->count, 1);
	nps_group_by__free(&groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_same_hash),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
