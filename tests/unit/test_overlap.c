/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "overlap_reference.h"

/* Adds up the spans of one type. */
static uint64_t length(const struct nps_vec *spans, uint32_t type, size_t *count)
{
	uint64_t sum = 0;

	*count = 0;
	for (size_t i = 0; i < spans->len; i++) {
		const struct nps_span *s = &NPS_AT(spans, struct nps_span, i);

		if (s->type != type)
			continue;
		sum += s->end - s->start;
		++*count;
	}
	return sum;
}

static void known_answer(void **state)
{
	/*
	 * compute   100-200, 150-250 (another stream), 250-260, 400-500
	 * comm      180-300, 450-460, 490-600
	 */
	const struct nps_span compute[] = {
		{ 100, 200, 0, 0 }, { 150, 250, 0, 0 }, { 250, 260, 0, 0 }, { 400, 500, 0, 0 }
	};
	const struct nps_span comm[] = { { 180, 300, 0, 0 }, { 450, 460, 0, 0 }, { 490, 600, 0, 0 } };
	struct nps_overlap_sums sums;
	struct nps_vec spans;
	size_t n;

	(void)state;
	nps_vec__init(&spans, AT_FDCWD, sizeof(struct nps_span));
	assert_int_equal(nps_overlap__build(compute, 4, comm, 3, 5, &spans, &sums), 0);
	assert_int_equal(sums.computing, 150 + 10 + 100);
	assert_int_equal(sums.communication, 120 + 10 + 110);
	assert_int_equal(sums.not_overlapped, 40 + 0 + 100); /* 260-300, 500-600 */
	assert_int_equal(sums.free, 100); /* 300-400 */
	assert_int_equal(sums.first, 100);
	assert_int_equal(sums.last, 600);
	assert_int_equal(sums.computing + sums.not_overlapped + sums.free, sums.last - sums.first);
	assert_int_equal(length(&spans, NPS_OVERLAP_COMPUTE, &n), sums.computing);
	assert_int_equal(n, 3); /* touching kernels stay apart, concurrent ones merge */
	assert_int_equal(length(&spans, NPS_OVERLAP_COMM, &n), sums.communication);
	assert_int_equal(n, 3);
	assert_int_equal(length(&spans, NPS_OVERLAP_COMM_ALONE, &n), sums.not_overlapped);
	assert_int_equal(n, 2);
	assert_int_equal(length(&spans, NPS_OVERLAP_FREE, &n), sums.free);
	assert_int_equal(NPS_AT(&spans, struct nps_span, 0).device, 5);
	nps_vec__free(&spans);
}

static void a_collective_around_kernels_is_cut_by_each(void **state)
{
	const struct nps_span compute[] = { { 10, 20, 0, 0 }, { 30, 40, 0, 0 }, { 50, 60, 0, 0 } };
	const struct nps_span comm[] = { { 0, 100, 0, 0 } };
	struct nps_overlap_sums sums;
	struct nps_vec spans;
	size_t n;

	(void)state;
	nps_vec__init(&spans, AT_FDCWD, sizeof(struct nps_span));
	assert_int_equal(nps_overlap__build(compute, 3, comm, 1, 0, &spans, &sums), 0);
	assert_int_equal(length(&spans, NPS_OVERLAP_COMM_ALONE, &n), 70);
	assert_int_equal(n, 4);
	assert_int_equal(sums.free, 0);
	nps_vec__free(&spans);
}

static void one_kernel_over_several_collectives(void **state)
{
	const struct nps_span compute[] = { { 0, 100, 0, 0 } };
	const struct nps_span comm[] = { { 10, 20, 0, 0 }, { 30, 120, 0, 0 }, { 130, 140, 0, 0 } };
	struct nps_overlap_sums sums;

	(void)state;
	assert_int_equal(nps_overlap__build(compute, 1, comm, 3, 0, NULL, &sums), 0);
	assert_int_equal(sums.not_overlapped, 20 + 10);
	assert_int_equal(sums.free, 10);
	assert_int_equal(sums.communication, 10 + 90 + 10);
}

static void nothing_is_nothing(void **state)
{
	struct nps_overlap_sums sums;

	(void)state;
	assert_int_equal(nps_overlap__build(NULL, 0, NULL, 0, 0, NULL, &sums), 0);
	assert_int_equal(sums.first, 0);
	assert_int_equal(sums.last, 0);
	assert_int_equal(sums.free, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answer),
		cmocka_unit_test(a_collective_around_kernels_is_cut_by_each),
		cmocka_unit_test(one_kernel_over_several_collectives),
		cmocka_unit_test(nothing_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
