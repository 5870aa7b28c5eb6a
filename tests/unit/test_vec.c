/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

#include <string.h>

static void rows_survive_growth_into_a_file(void **state)
{
	struct nps_vec vec;

	(void)state;
	nps_vec__init(&vec, AT_FDCWD, sizeof(uint64_t));
	for (uint64_t i = 0; i < 200000; i++) {
		uint64_t *row = nps_vec__push(&vec);

		assert_non_null(row);
		assert_int_equal(*row, 0);
		*row = i * i;
	}
	assert_true(vec.fd >= 0); /* 1.6 MB do not stay in memory */
	nps_vec__cool(&vec);
	for (uint64_t i = 0; i < 200000; i++)
		assert_int_equal(NPS_AT(&vec, uint64_t, i), i * i);
	nps_vec__free(&vec);
	assert_null(vec.data);
}

static void resize_zeroes_again(void **state)
{
	struct nps_vec vec;

	(void)state;
	nps_vec__init(&vec, AT_FDCWD, 1);
	assert_int_equal(nps_vec__resize(&vec, 100), 0);
	memset(vec.data, 7, 100);
	vec.len = 10;
	assert_int_equal(nps_vec__resize(&vec, 100), 0);
	assert_int_equal(NPS_AT(&vec, char, 9), 7);
	assert_int_equal(NPS_AT(&vec, char, 10), 0);
	assert_int_equal(NPS_AT(&vec, char, 99), 0);
	nps_vec__free(&vec);
}

static void impossible_sizes_are_refused(void **state)
{
	struct nps_vec vec;

	(void)state;
	nps_vec__init(&vec, AT_FDCWD, 64);
	assert_true(nps_vec__reserve(&vec, SIZE_MAX / 2) < 0);
	assert_int_equal(vec.len, 0);
	nps_vec__free(&vec);
}

static void map_keeps_every_key(void **state)
{
	struct nps_map map = { 0 };

	(void)state;
	assert_int_equal(nps_map__get(&map, 5), NPS_NONE);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(nps_map__put(&map, (uint64_t)i << 40, i), 0);
	assert_int_equal(nps_map__put(&map, (uint64_t)7 << 40, 70), 0);
	assert_int_equal(map.len, 10000);
	assert_int_equal(nps_map__get(&map, (uint64_t)7 << 40), 70);
	assert_int_equal(nps_map__get(&map, (uint64_t)9999 << 40), 9999);
	assert_int_equal(nps_map__get(&map, 1), NPS_NONE);
	nps_map__clear(&map);
	assert_int_equal(nps_map__get(&map, 0), NPS_NONE);
	nps_map__free(&map);
}

static void sort_is_stable(void **state)
{
	struct nps_key keys[6] = { { 3, 0, 1 },		 { 1, 1, 0 }, { 3, 2, 0 },
				   { 1ULL << 60, 3, 1 }, { 1, 4, 1 }, { 0, 5, 0 } },
		       tmp[6];
	const uint32_t by_key[] = { 5, 1, 4, 0, 2, 3 }, by_group[] = { 5, 1, 2, 4, 0, 3 };

	(void)state;
	nps_sort_keys(keys, tmp, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(keys[i].row, by_key[i]);
	nps_sort_groups(keys, tmp, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(keys[i].row, by_group[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_survive_growth_into_a_file),
		cmocka_unit_test(resize_zeroes_again),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(map_keeps_every_key),
		cmocka_unit_test(sort_is_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
