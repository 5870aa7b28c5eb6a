/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/ext_sort.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct record {
	struct nps_sort_key key;
	uint64_t serial;
};

static uint64_t state;

static uint64_t random64(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 17;
}

/* Adds N records with keys by MAKE, and checks order, stability and that none is lost. */
static void check(size_t n, struct nps_sort_key (*make)(size_t i))
{
	int dirfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned char *seen = calloc(n + 1, 1);
	struct nps_ext_sort sort;
	struct record last = { 0 };
	const struct record *r;
	size_t got = 0;

	state = 1;
	nps_ext_sort__init(&sort, dirfd, sizeof(struct record));
	for (size_t i = 0; i < n; i++) {
		struct record *record = nps_ext_sort__add(&sort);

		assert_non_null(record);
		*record = (struct record){ make(i), i };
	}
	assert_int_equal(nps_ext_sort__finish(&sort), 0);
	while ((r = nps_ext_sort__next(&sort))) {
		if (got++) {
			assert_true(last.key.high < r->key.high ||
				    (last.key.high == r->key.high &&
				     (last.key.low < r->key.low ||
				      (last.key.low == r->key.low && last.serial < r->serial))));
		}
		assert_false(seen[r->serial]);
		seen[r->serial] = 1;
		last = *r;
	}
	assert_int_equal(sort.err, 0);
	assert_int_equal(got, n);
	nps_ext_sort__free(&sort);
	free(seen);
	close(dirfd);
}

static struct nps_sort_key random_key(size_t i)
{
	(void)i;
	return (struct nps_sort_key){ random64() % 1000, random64() };
}

static struct nps_sort_key few_keys(size_t i)
{
	(void)i;
	return (struct nps_sort_key){ 7, random64() % 3 };
}

static struct nps_sort_key ascending(size_t i)
{
	return (struct nps_sort_key){ i / 2, 0 };
}

static struct nps_sort_key descending(size_t i)
{
	return (struct nps_sort_key){ UINT64_MAX - i, UINT64_MAX };
}

/* Mostly in order, as bursts of several threads are. */
static struct nps_sort_key bursts(size_t i)
{
	return (struct nps_sort_key){ i + random64() % 100, i % 2 };
}

static const size_t sizes[] = { 0, 1, 2, 1023, 1024, 1025, 100000, 2500000 };

#define TEST(keys)                                                                                           \
	static void test_##keys(void **test_state)                                                           \
	{                                                                                                    \
		(void)test_state;                                                                            \
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)                                  \
			check(sizes[i], keys);                                                               \
	}
TEST(random_key)
TEST(few_keys)
TEST(ascending)
TEST(descending)
TEST(bursts)

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_key),
					    cmocka_unit_test(test_few_keys), cmocka_unit_test(test_ascending),
					    cmocka_unit_test(test_descending),
					    cmocka_unit_test(test_bursts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
