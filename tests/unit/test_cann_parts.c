/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the import of CANN's raw data that have exact answers: clocks, batches, tensors, counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/cann/batches.h"
#include "import/cann/clock.h"
#include "import/cann/pmu.h"
#include "import/cann/tensors.h"

__extension__ typedef __int128 wide;

static bool exact(const struct nps_cann_clock *clock, uint64_t count, uint64_t *ns)
{
	wide ticks = (wide)count - clock->count0, at = ticks * (wide)NPS_NS_PER_S;

	at = at / (wide)clock->hz - (at % (wide)clock->hz < 0);
	at += clock->zero;
	*ns = (uint64_t)at;
	return count && at > 0 && at <= INT64_MAX; /* 0: it was not recorded */
}

static void clocks_are_exact(void **state)
{
	static const uint64_t hz[] = { 1,	  7,	      1000,	  38400000,  50000000,
				       100000000, 2593905000, 1000000000, 9999999999 };
	static const uint64_t far[] = { 0,	    1,		2,
					49,	    50,		999999999,
					1000000000, 1000000001, 123456789012345,
					1ULL << 53, 1ULL << 63, UINT64_MAX - 1,
					UINT64_MAX };
	const int64_t zero = 1764028801123459000;

	(void)state;
	for (size_t i = 0; i < sizeof(hz) / sizeof(*hz); i++)
		for (size_t k = 0; k < sizeof(far) / sizeof(*far); k++)
			for (uint64_t count0 = 0; count0 < 3; count0++) {
				struct nps_cann_clock clock = { .known = true,
								.count0 = count0 * 77777777777777,
								.hz = hz[i],
								.zero = zero };
				uint64_t got = 0, want = 0;
				bool valid = exact(&clock, far[k], &want);

				assert_int_equal(nps_cann_clock__unix(&clock, far[k], &got), valid);
				if (valid)
					assert_true(got == want);
			}
}

static void an_unknown_clock_has_no_time(void **state)
{
	struct nps_cann_clock clock = { .known = false, .hz = 1000, .zero = 1 };
	uint64_t ns;

	(void)state;
	assert_false(nps_cann_clock__unix(&clock, 5, &ns));
}

static uint32_t batch_of_row[256];

static uint32_t *batch_of(void *arg, uint32_t row)
{
	(void)arg;
	return &batch_of_row[row];
}

/* Ids recorded on stream 5 in this order, -1: a flip whose first id is the next number. */
static void report(struct nps_batches *batches, const int *ids, size_t n)
{
	uint32_t row = 0, flips = 0;

	memset(batch_of_row, 0xff, sizeof(batch_of_row));
	nps_batches__init(batches, AT_FDCWD, batch_of, NULL);
	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0)
			assert_int_equal(nps_batches__flip(batches, 1, 5, ++flips, ids[++i]), 0);
		else
			assert_int_equal(nps_batches__task(batches, 1, 5, ids[i], row++), 0);
	nps_batches__free(batches);
}

static void a_flip_begins_a_batch(void **state)
{
	const int ids[] = { 65534, 65535, -1, 0, 0, 1, -1, 0, 0 };
	struct nps_batches batches;

	(void)state;
	report(&batches, ids, sizeof(ids) / sizeof(*ids));
	assert_int_equal(batch_of_row[0], 0);
	assert_int_equal(batch_of_row[1], 0);
	assert_int_equal(batch_of_row[2], 1);
	assert_int_equal(batch_of_row[3], 1);
	assert_int_equal(batch_of_row[4], 2);
}

static void racing_tasks_move_to_the_new_batch(void **state)
{
	/* 2 and 0 were recorded before the flip that names 3; so was 65535 of the old batch, between them. */
	const int ids[] = { 65533, 65534, 2, 65535, 0, 1, -1, 3, 3, 4 };
	const uint32_t want[] = { 0, 0, 1, 0, 1, 1, 1, 1 };
	struct nps_batches batches;

	(void)state;
	report(&batches, ids, sizeof(ids) / sizeof(*ids));
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		assert_int_equal(batch_of_row[i], want[i]);
}

static void a_destroyed_stream_begins_a_batch_of_its_own(void **state)
{
	struct nps_batches batches;

	(void)state;
	memset(batch_of_row, 0xff, sizeof(batch_of_row));
	nps_batches__init(&batches, AT_FDCWD, batch_of, NULL);
	assert_int_equal(nps_batches__task(&batches, 0, 2, 10, 0), 0);
	assert_int_equal(nps_batches__flip(&batches, 0, 2, 65535, 65535), 0);
	assert_int_equal(nps_batches__task(&batches, 0, 2, 0, 1), 0);
	assert_int_equal(nps_batches__flip(&batches, 0, 2, 1, 0), 0);
	assert_int_equal(nps_batches__task(&batches, 0, 2, 0, 2), 0);
	assert_int_equal(nps_batches__task(&batches, 1, 2, 0, 3), 0); /* another device */
	nps_batches__free(&batches);
	assert_int_equal(batch_of_row[0], 0);
	assert_int_equal(batch_of_row[1], 1);
	assert_int_equal(batch_of_row[2], 2);
	assert_int_equal(batch_of_row[3], 0);
}

static void put_tensor(uint8_t *p, uint32_t kind, uint32_t format, uint32_t type, uint32_t first,
		       uint32_t second)
{
	const uint32_t words[11] = { kind, format, type, first, second };

	memcpy(p, words, sizeof(words)); /* the tests run on little-endian machines, as the program does */
}

static void tensors_are_reported_once(void **state)
{
	uint8_t data[3 * NPS_TENSOR_BYTES];
	struct nps_strings strings;
	struct nps_tensors tensors;
	struct nps_tensor_texts texts;
	uint32_t all, joined;

	(void)state;
	nps_strings__init(&strings, AT_FDCWD);
	nps_tensors__init(&tensors, &strings, AT_FDCWD);
	put_tensor(data, 0, 2, 1, 32, 3);
	put_tensor(data + NPS_TENSOR_BYTES, 0, 29, 999, 0, 7);
	put_tensor(data + 2 * NPS_TENSOR_BYTES, 1, 0x1000 + 3, 27, 64, 0);
	all = nps_tensors__add(&tensors, data, 3);
	assert_int_equal(nps_tensors__add(&tensors, data, 3), all);
	assert_int_not_equal(nps_tensors__add(&tensors, data, 2), all);
	joined = nps_tensors__join(&tensors, nps_tensors__add(&tensors, data, 1),
				   nps_tensors__add(&tensors, data + NPS_TENSOR_BYTES, 2));
	assert_int_equal(joined, all);
	assert_int_equal(nps_tensors__texts(&tensors, all, &texts), 0);
	assert_string_equal(nps_strings__get(&strings, texts.input_shapes), "32,3;");
	assert_string_equal(nps_strings__get(&strings, texts.input_formats), "ND;FRACTAL_NZ");
	assert_string_equal(nps_strings__get(&strings, texts.input_types), "FLOAT16;999");
	assert_string_equal(nps_strings__get(&strings, texts.output_shapes), "64");
	assert_string_equal(nps_strings__get(&strings, texts.output_formats), "NC1HWC0");
	assert_string_equal(nps_strings__get(&strings, texts.output_types), "DT_BF16");
	nps_tensors__free(&tensors);
	nps_strings__free(&strings);
}

#define MANY 300

static void many_tensors_are_reported_whole(void **state)
{
	uint8_t data[MANY * NPS_TENSOR_BYTES];
	const uint32_t large[8] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
				    UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
	struct nps_strings strings;
	struct nps_tensors tensors;
	struct nps_tensor_texts texts, others;
	const char *p;
	size_t n = 1;

	(void)state;
	nps_strings__init(&strings, AT_FDCWD);
	nps_tensors__init(&tensors, &strings, AT_FDCWD);
	for (uint32_t i = 0; i < MANY; i++) {
		put_tensor(data + (size_t)i * NPS_TENSOR_BYTES, 0, 11, 17, 0, 0);
		memcpy(data + (size_t)i * NPS_TENSOR_BYTES + 12, large, sizeof(large));
	}
	assert_int_equal(nps_tensors__texts(&tensors, nps_tensors__add(&tensors, data, MANY), &texts), 0);
	for (p = nps_strings__get(&strings, texts.input_shapes); (p = strchr(p, ';')); p++)
		n++;
	assert_int_equal(n, MANY);
	assert_int_equal(strlen(nps_strings__get(&strings, texts.input_shapes)), MANY * (8 * 11) - 1);
	assert_int_equal(strlen(nps_strings__get(&strings, texts.input_formats)),
			 MANY * strlen("FRACTAL_DECONV_SP_STRIDE_TRANS;") - 1);
	/* Another last one makes another text. */
	data[sizeof(data) - 1] = 1;
	assert_int_equal(nps_tensors__texts(&tensors, nps_tensors__add(&tensors, data, MANY), &others), 0);
	assert_string_not_equal(nps_strings__get(&strings, texts.input_shapes),
				nps_strings__get(&strings, others.input_shapes));
	nps_tensors__free(&tensors);
	nps_strings__free(&strings);
}

static double value_of(const struct nps_strings *strings, const struct nps_pmu_plan *plan,
		       const double *values, const char *name)
{
	for (unsigned int i = 0; i < plan->n; i++)
		if (!strcmp(nps_strings__get(strings, plan->columns[i].name), name))
			return values[i];
	fail_msg("no %s", name);
	return 0;
}

/* The kernel of outputs 3.2 with 256 blocks on 48 vector cores of 1800 MHz: 6 rounds. */
static void blocks_run_in_rounds(void **state)
{
	struct nps_cann_dir dir = {
		.chip = NPS_CHIP_910B,
		.aic_mhz = 1800,
		.aic_cores = 24,
		.aiv_cores = 48,
		.aiv = { "PipeUtilization", { 0x8, 0xa, 0x9, 0xb, 0xc, 0xd, 0x54, 0x55 }, 8 }
	};
	struct nps_run_pmu pmu = { .cycles = { 0, 256 * 9000 },
				   .values = { { 0 }, { 128 * 9000 } },
				   .main = 1 };
	struct nps_pmu_plan plan;
	struct nps_strings strings;
	double values[NPS_PMU_MOST];

	(void)state;
	nps_strings__init(&strings, AT_FDCWD);
	assert_int_equal(nps_pmu__plan(&plan, &dir, &strings), 0);
	assert_int_equal(plan.n, 15);
	nps_pmu__compute(&plan, &pmu, 256, 0, 0, values);
	assert_true(value_of(&strings, &plan, values, "aiv_total_time") == 9000 * 6 / 1.8);
	assert_true(value_of(&strings, &plan, values, "aiv_vec_ratio") == 0.5);
	assert_true(value_of(&strings, &plan, values, "aiv_vec_time") == 9000 * 3 / 1.8);
	assert_true(value_of(&strings, &plan, values, "aiv_icache_miss_rate") == 0);
	nps_pmu__compute(&plan, &pmu, 256, 0, 900, values); /* the cores ran at half their frequency */
	assert_true(value_of(&strings, &plan, values, "aiv_total_time") == 9000 * 6 / 0.9);
	nps_strings__free(&strings);
}

/* A kernel of 24 blocks on AI cores and twice as many on vector cores, of which each block has a record. */
static void other_cores_have_blocks_of_their_own(void **state)
{
	struct nps_cann_dir dir = { .chip = NPS_CHIP_910B,
				    .aic_mhz = 1800,
				    .aic_cores = 24,
				    .aiv_cores = 48,
				    .aic = { "PipeUtilization", { 0x416, 0x417 }, 2 },
				    .aiv = { "PipeUtilization", { 0x8 }, 1 } };
	struct nps_run_pmu pmu = { .cycles = { 24 * 9000, 48 * 9000 }, .blocks = { 0, 48 }, .main = 0 };
	struct nps_pmu_plan plan;
	struct nps_strings strings;
	double values[NPS_PMU_MOST];

	(void)state;
	nps_strings__init(&strings, AT_FDCWD);
	assert_int_equal(nps_pmu__plan(&plan, &dir, &strings), 0);
	nps_pmu__compute(&plan, &pmu, 24, 0, 0, values);
	assert_true(value_of(&strings, &plan, values, "aic_total_time") == 9000 / 1.8);
	assert_true(value_of(&strings, &plan, values, "aiv_total_time") == 9000 / 1.8);
	nps_pmu__compute(&plan, &pmu, 24, 96, 0, values); /* the host knows better */
	assert_true(value_of(&strings, &plan, values, "aiv_total_time") == 9000 / 3.6 * 2);
	/* Of how many blocks the cycles are is not known: nor is how long one of them took. */
	pmu.blocks[1] = 0;
	nps_pmu__compute(&plan, &pmu, 0, 0, 0, values);
	assert_true(isnan(value_of(&strings, &plan, values, "aic_total_time")));
	assert_true(isnan(value_of(&strings, &plan, values, "aiv_total_time")));
	assert_true(value_of(&strings, &plan, values, "aiv_total_cycles") == 48 * 9000);
	nps_strings__free(&strings);
}

static void without_a_frequency_there_is_no_time(void **state)
{
	struct nps_cann_dir dir = { .chip = NPS_CHIP_910B, .aic = { "Memory", { 0x15, 0x16 }, 2 } };
	struct nps_run_pmu pmu = { .cycles = { 9000 }, .values = { { 5, 0 } }, .main = 0 };
	struct nps_pmu_plan plan;
	struct nps_strings strings;
	double values[NPS_PMU_MOST];

	(void)state;
	nps_strings__init(&strings, AT_FDCWD);
	assert_int_equal(nps_pmu__plan(&plan, &dir, &strings), 0);
	nps_pmu__compute(&plan, &pmu, 1, 0, 0, values);
	assert_true(isnan(value_of(&strings, &plan, values, "aic_total_time")));
	assert_true(isnan(value_of(&strings, &plan, values, "aic_ub_read_bw")));
	assert_true(value_of(&strings, &plan, values, "aic_ub_write_bw") == 0);
	assert_true(value_of(&strings, &plan, values, "aic_total_cycles") == 9000);
	nps_pmu__compute(&plan, &pmu, 1, 0, 900, values);
	assert_true(value_of(&strings, &plan, values, "aic_total_time") == 10000);
	nps_strings__free(&strings);
}

static void nothing_is_divided_by_zero(void **state)
{
	struct nps_cann_dir dir = { .chip = NPS_CHIP_910B,
				    .aic_mhz = 1000,
				    .aic = { "Memory", { 0x15, 0x16, 0x31, 0x32, 0x12, 0x13, 0xf, 0x10 }, 8 },
				    .aiv = { "L2Cache", { 0x500, 0x502 }, 2 } };
	struct nps_run_pmu pmu = { .cycles = { 0, UINT64_MAX },
				   .values = { { 5 }, { UINT64_MAX } },
				   .main = 2 };
	struct nps_pmu_plan plan;
	struct nps_strings strings;
	double values[NPS_PMU_MOST];

	(void)state;
	nps_strings__init(&strings, AT_FDCWD);
	assert_int_equal(nps_pmu__plan(&plan, &dir, &strings), 0);
	nps_pmu__compute(&plan, &pmu, 1, 0, 0, values);
	for (unsigned int i = 0; i < plan.n; i++)
		assert_true(isfinite(values[i]));
	assert_true(value_of(&strings, &plan, values, "aic_ub_read_bw") == 0);
	assert_true(value_of(&strings, &plan, values, "aiv_write_cache_hit") == (double)UINT64_MAX);
	nps_strings__free(&strings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_are_exact),
		cmocka_unit_test(an_unknown_clock_has_no_time),
		cmocka_unit_test(a_flip_begins_a_batch),
		cmocka_unit_test(racing_tasks_move_to_the_new_batch),
		cmocka_unit_test(a_destroyed_stream_begins_a_batch_of_its_own),
		cmocka_unit_test(tensors_are_reported_once),
		cmocka_unit_test(many_tensors_are_reported_whole),
		cmocka_unit_test(blocks_run_in_rounds),
		cmocka_unit_test(other_cores_have_blocks_of_their_own),
		cmocka_unit_test(without_a_frequency_there_is_no_time),
		cmocka_unit_test(nothing_is_divided_by_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
