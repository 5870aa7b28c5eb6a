/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/pmu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GIB8 8589934592.0 /* 2^33: bandwidths are shared out by it */

/* One number. Events that were not measured leave it out. */
struct pmu_metric {
	const char *name;
	uint8_t kind;
	uint16_t event[NPS_PMU_PARTS];
	double scale; /* bytes an event, or how much of the value counts */
	uint8_t weight[NPS_PMU_PARTS]; /* of the events; 0: 1 */
};

struct pmu_set {
	const char *metrics; /* ai_core_metrics of sample.json */
	const struct pmu_metric *rows;
	size_t n;
};

#define METRIC(title, how, times, ...)                                                                       \
	{                                                                                                    \
		.name = title, .kind = how, .event = { __VA_ARGS__ }, .scale = times                         \
	}

#define PART(name, event)                                                                                    \
	METRIC(name "_time", NPS_PMU_TIME, 1, event), METRIC(name "_ratio", NPS_PMU_RATIO, 1, event)

static const struct pmu_metric pipe_split[] = { METRIC("mac_time", NPS_PMU_TIME, 1, 0x416, 0x417),
						METRIC("mac_ratio", NPS_PMU_RATIO, 1, 0x416, 0x417),
						PART("scalar", 0x9),
						PART("mte1", 0x302),
						PART("mte2", 0xc),
						PART("fixpipe", 0x303),
						METRIC("icache_miss_rate", NPS_PMU_QUOTIENT, 1, 0x55, 0x54) };
static const struct pmu_metric pipe[] = { PART("vec", 0x8),
					  PART("mac", 0xa),
					  PART("scalar", 0x9),
					  PART("mte1", 0xb),
					  PART("mte2", 0xc),
					  PART("mte3", 0xd),
					  METRIC("icache_miss_rate", NPS_PMU_QUOTIENT, 1, 0x55, 0x54) };
static const struct pmu_metric pipe_v6[] = {
	PART("vec", 0x501),	PART("mac", 0x301),
	PART("scalar", 0x1),	PART("mte1", 0x701),
	PART("mte2", 0x202),	PART("mte3", 0x203),
	PART("fixpipe", 0x714), METRIC("icache_miss_rate", NPS_PMU_QUOTIENT, 1, 0x35, 0x34)
};
static const struct pmu_metric arithmetic[] = { METRIC("mac_fp16_ratio", NPS_PMU_RATIO, 1, 0x49),
						METRIC("mac_int8_ratio", NPS_PMU_RATIO, 1, 0x4a),
						METRIC("vec_fp32_ratio", NPS_PMU_RATIO, 1, 0x4b),
						METRIC("vec_fp16_ratio", NPS_PMU_RATIO, 1, 0x4c, 0x4d),
						METRIC("vec_int32_ratio", NPS_PMU_RATIO, 1, 0x4e),
						METRIC("vec_misc_ratio", NPS_PMU_RATIO, 1, 0x4f),
						{ .name = "cube_fops",
						  .kind = NPS_PMU_VALUE,
						  .event = { 0x49, 0x4a },
						  .scale = 8192,
						  .weight = { 1, 2 } },
						{ .name = "vector_fops",
						  .kind = NPS_PMU_VALUE,
						  .event = { 0x4c, 0x4d, 0x4b, 0x4e, 0x4f },
						  .scale = 32,
						  .weight = { 4, 2, 2, 2, 1 } } };
static const struct pmu_metric arithmetic_v6[] = { METRIC("mac_fp16_ratio", NPS_PMU_RATIO, 1, 0x323),
						   METRIC("mac_int8_ratio", NPS_PMU_RATIO, 1, 0x324),
						   { .name = "cube_fops",
						     .kind = NPS_PMU_VALUE,
						     .event = { 0x323, 0x324 },
						     .scale = 8192,
						     .weight = { 1, 2 } } };
static const struct pmu_metric memory[] = { METRIC("ub_read_bw", NPS_PMU_BANDWIDTH, 256 * 4, 0x15),
					    METRIC("ub_write_bw", NPS_PMU_BANDWIDTH, 256 * 4, 0x16),
					    METRIC("l1_read_bw", NPS_PMU_BANDWIDTH, 256 * 16, 0x31),
					    METRIC("l1_write_bw", NPS_PMU_BANDWIDTH, 128 * 8, 0x32),
					    METRIC("main_mem_read_bw", NPS_PMU_BANDWIDTH, 8 * 8, 0x12),
					    METRIC("main_mem_write_bw", NPS_PMU_BANDWIDTH, 8 * 8, 0x13),
					    METRIC("l2_read_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0xf),
					    METRIC("l2_write_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0x10) };
static const struct pmu_metric memory_v6[] = { METRIC("ub_write_bw", NPS_PMU_BANDWIDTH, 256 * 4, 0x570),
					       METRIC("l1_read_bw", NPS_PMU_BANDWIDTH, 256 * 16, 0x707),
					       METRIC("l1_write_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0x709),
					       METRIC("main_mem_read_bw", NPS_PMU_BANDWIDTH, 8 * 8, 0x400),
					       METRIC("main_mem_write_bw", NPS_PMU_BANDWIDTH, 8 * 8, 0x401) };
static const struct pmu_metric memory_l0[] = { METRIC("l0a_read_bw", NPS_PMU_BANDWIDTH, 256 * 16, 0x1b),
					       METRIC("l0a_write_bw", NPS_PMU_BANDWIDTH, 256 * 16, 0x1c),
					       METRIC("l0b_read_bw", NPS_PMU_BANDWIDTH, 256 * 16, 0x21),
					       METRIC("l0b_write_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0x22),
					       METRIC("l0c_read_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0x27),
					       METRIC("l0c_write_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0x29),
					       METRIC("l0c_read_bw_cube", NPS_PMU_BANDWIDTH, 256 * 32, 0x28),
					       METRIC("l0c_write_bw_cube", NPS_PMU_BANDWIDTH, 256 * 32,
						      0x2a) };
static const struct pmu_metric memory_l0_v6[] = {
	METRIC("l0a_read_bw", NPS_PMU_BANDWIDTH, 256 * 16, 0x304),
	METRIC("l0a_write_bw", NPS_PMU_BANDWIDTH, 256 * 16, 0x703),
	METRIC("l0b_read_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0x306),
	METRIC("l0b_write_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0x705),
	METRIC("l0c_read_bw", NPS_PMU_BANDWIDTH, 256 * 8, 0x712),
	METRIC("l0c_read_bw_cube", NPS_PMU_BANDWIDTH, 256 * 8, 0x30a),
	METRIC("l0c_write_bw_cube", NPS_PMU_BANDWIDTH, 256 * 8, 0x308)
};
static const struct pmu_metric memory_ub[] = { METRIC("ub_read_bw_vector", NPS_PMU_BANDWIDTH, 128 * 2, 0x43),
					       METRIC("ub_write_bw_vector", NPS_PMU_BANDWIDTH, 128 * 2, 0x44),
					       METRIC("ub_read_bw_scalar", NPS_PMU_BANDWIDTH, 128, 0x37),
					       METRIC("ub_write_bw_scalar", NPS_PMU_BANDWIDTH, 128, 0x38) };
static const struct pmu_metric memory_ub_v6[] = {
	METRIC("ub_read_bw_vector", NPS_PMU_BANDWIDTH, 128 * 2, 0x571),
	METRIC("ub_write_bw_vector", NPS_PMU_BANDWIDTH, 128 * 2, 0x572),
	METRIC("ub_read_bw_scalar", NPS_PMU_BANDWIDTH, 128, 0x3),
	METRIC("ub_write_bw_scalar", NPS_PMU_BANDWIDTH, 128, 0x5)
};
static const struct pmu_metric conflict[] = { METRIC("vec_bankgroup_cflt_ratio", NPS_PMU_RATIO, 1, 0x64),
					      METRIC("vec_bank_cflt_ratio", NPS_PMU_RATIO, 1, 0x65),
					      METRIC("vec_resc_cflt_ratio", NPS_PMU_RATIO, 1, 0x66) };
static const struct pmu_metric conflict_v6[] = {
	METRIC("vec_bank_cflt_ratio", NPS_PMU_RATIO, 1, 0x540, 0x556),
	METRIC("vec_resc_cflt_ratio", NPS_PMU_QUOTIENT, 1, 0x528, 0x502)
};
static const struct pmu_metric l2_cache[] = { METRIC("write_cache_hit", NPS_PMU_VALUE, 1, 0x500),
					      METRIC("write_cache_miss_allocate", NPS_PMU_VALUE, 1, 0x502),
					      METRIC("r0_read_cache_hit", NPS_PMU_VALUE, 1, 0x504),
					      METRIC("r0_read_cache_miss_allocate", NPS_PMU_VALUE, 1, 0x506),
					      METRIC("r1_read_cache_hit", NPS_PMU_VALUE, 1, 0x508),
					      METRIC("r1_read_cache_miss_allocate", NPS_PMU_VALUE, 1,
						     0x50a) };
/* KB of 128- and 256-byte words. */
static const struct pmu_metric memory_access[] = {
	METRIC("read_main_memory_datas", NPS_PMU_VALUE, 0.125, 0x50d, 0x50e),
	METRIC("write_main_memory_datas", NPS_PMU_VALUE, 0.125, 0x50c),
	METRIC("GM_to_L1_datas", NPS_PMU_DIFFERENCE, 0.25, 0x32, 0x206),
	METRIC("L0C_to_L1_datas", NPS_PMU_VALUE, 0.125, 0x206),
	METRIC("L0C_to_GM_datas", NPS_PMU_DIFFERENCE, 0.125, 0x20c, 0x206),
	METRIC("GM_to_UB_datas", NPS_PMU_VALUE, 0.125, 0x3e),
	METRIC("UB_to_GM_datas", NPS_PMU_VALUE, 0.125, 0x3d)
};

#define SET(name, rows)                                                                                      \
	{                                                                                                    \
		name, rows, NPS_ARRAY_SIZE(rows)                                                             \
	}

/* The first of a name whose first event was measured counts. */
static const struct pmu_set sets[] = { SET("PipeUtilization", pipe_split),
				       SET("PipeUtilizationExct", pipe_split),
				       SET("PipeUtilization", pipe_v6),
				       SET("PipeUtilization", pipe),
				       SET("ArithmeticUtilization", arithmetic),
				       SET("ArithmeticUtilization", arithmetic_v6),
				       SET("Memory", memory),
				       SET("Memory", memory_v6),
				       SET("MemoryL0", memory_l0),
				       SET("MemoryL0", memory_l0_v6),
				       SET("MemoryUB", memory_ub),
				       SET("MemoryUB", memory_ub_v6),
				       SET("ResourceConflictRatio", conflict),
				       SET("ResourceConflictRatio", conflict_v6),
				       SET("L2Cache", l2_cache),
				       SET("MemoryAccess", memory_access) };

static int8_t position(const struct nps_cann_metrics *metrics, uint32_t event)
{
	for (unsigned int i = 0; i < metrics->nevents; i++)
		if (metrics->events[i] == event)
			return i;
	return -1;
}

/* The set of which the most events were measured. */
static const struct pmu_set *find_set(const struct nps_cann_metrics *metrics)
{
	const struct pmu_set *best = NULL;
	unsigned int most = 0;

	for (size_t i = 0; i < NPS_ARRAY_SIZE(sets); i++) {
		unsigned int found = 0;

		if (strcmp(sets[i].metrics, metrics->name))
			continue;
		for (size_t k = 0; k < sets[i].n; k++)
			found += position(metrics, sets[i].rows[k].event[0]) >= 0;
		if (found > most) {
			most = found;
			best = &sets[i];
		}
	}
	return best;
}

static int plan_add_column(struct nps_pmu_plan *plan, struct nps_strings *strings, unsigned int core,
			   const struct pmu_metric *metric, const struct nps_cann_metrics *metrics,
			   bool split)
{
	struct nps_pmu_column *column = &plan->columns[plan->n];

	if (plan->n == NPS_PMU_MOST)
		return 0;
	*column = (struct nps_pmu_column){ .core = core, .kind = metric->kind, .scale = metric->scale };
	for (int i = 0; i < NPS_PMU_PARTS; i++) {
		column->weight[i] = metric->weight[i] ? metric->weight[i] : 1;
		column->event[i] = metric->event[i] ? position(metrics, metric->event[i]) : -1;
		if (metric->event[i] && column->event[i] < 0)
			return 0;
	}
	column->name = split ? nps_strings__addf(strings, "%s_%s", core ? "aiv" : "aic", metric->name)
			     : nps_strings__addz(strings, metric->name);
	plan->n++;
	return column->name == NPS_NONE ? -ENOMEM : 0;
}

int nps_pmu__plan(struct nps_pmu_plan *plan, const struct nps_cann_dir *dir, struct nps_strings *strings)
{
	static const struct pmu_metric totals[] = { METRIC("total_time", NPS_PMU_TOTAL_TIME, 1, 0),
						    METRIC("total_cycles", NPS_PMU_TOTAL_CYCLES, 1, 0) };
	/* One kind of core does all on older chips. */
	bool split = dir->chip >= NPS_CHIP_910B;
	int err = 0;

	*plan = (struct nps_pmu_plan){ .mhz = { dir->aic_mhz,
						dir->aiv_mhz > 0 ? dir->aiv_mhz : dir->aic_mhz },
				       .cores = { dir->aic_cores, dir->aiv_cores } };
	for (unsigned int core = 0; core < 1U + split; core++) {
		const struct nps_cann_metrics *metrics = core ? &dir->aiv : &dir->aic;
		const struct pmu_set *set = find_set(metrics);

		for (size_t i = 0; !err && set && i < NPS_ARRAY_SIZE(totals); i++)
			err = plan_add_column(plan, strings, core, &totals[i], metrics, split);
		for (size_t i = 0; !err && set && i < set->n; i++)
			err = plan_add_column(plan, strings, core, &set->rows[i], metrics, split);
	}
	return err;
}

static double metric_quotient(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* The blocks whose cycles PMU has of a kind of cores, 0 unknown. */
static uint32_t blocks_on(const struct nps_run_pmu *pmu, unsigned int core, uint32_t blocks,
			  uint32_t mix_blocks)
{
	if (core == pmu->main || (pmu->main > 1 && !pmu->blocks[core]))
		return blocks;
	return pmu->main < 2 && mix_blocks ? mix_blocks : pmu->blocks[core];
}

/* ns: cycles of all cores, as long as the rounds of blocks last; NaN of unknown blocks or frequency. */
static double total_time(const struct nps_pmu_plan *plan, unsigned int core, uint64_t cycles, uint32_t blocks,
			 double mhz)
{
	uint32_t cores = plan->cores[core], rounds;

	mhz = mhz > 0 ? mhz : plan->mhz[core];
	if (!cycles)
		return 0;
	if (!blocks || !(mhz > 0))
		return NPS_NAN;
	rounds = cores ? (blocks - 1) / cores + 1 : 1;
	return cycles * 1000.0 / blocks * rounds / mhz;
}

/* GiB/s of so many bytes in so many cycles, shared out by eight; NaN at an unknown frequency. */
static double bandwidth(double bytes, double cycles, double mhz)
{
	if (bytes > 0 && cycles > 0 && !(mhz > 0))
		return NPS_NAN;
	return metric_quotient(bytes * mhz * 1e6, cycles) / GIB8;
}

void nps_pmu__compute(const struct nps_pmu_plan *plan, const struct nps_run_pmu *pmu, uint32_t blocks,
		      uint32_t mix_blocks, double mhz, double *values)
{
	double times[2];

	for (unsigned int core = 0; core < 2; core++)
		times[core] = total_time(plan, core, pmu->cycles[core],
					 blocks_on(pmu, core, blocks, mix_blocks), mhz);
	for (unsigned int i = 0; i < plan->n; i++) {
		const struct nps_pmu_column *column = &plan->columns[i];
		double cycles = pmu->cycles[column->core], part[NPS_PMU_PARTS] = { 0 }, sum = 0;

		for (int e = 0; e < NPS_PMU_PARTS; e++) {
			if (column->event[e] >= 0)
				part[e] = pmu->values[column->core][column->event[e]];
			sum += part[e] * column->weight[e];
		}
		switch ((enum nps_pmu_kind)column->kind) {
		case NPS_PMU_TOTAL_TIME:
			values[i] = times[column->core];
			break;
		case NPS_PMU_TOTAL_CYCLES:
			values[i] = cycles;
			break;
		case NPS_PMU_RATIO:
			values[i] = metric_quotient(sum, cycles);
			break;
		case NPS_PMU_TIME:
			values[i] = times[column->core] * metric_quotient(sum, cycles);
			break;
		case NPS_PMU_QUOTIENT:
			values[i] = metric_quotient(part[0], part[1]);
			break;
		case NPS_PMU_BANDWIDTH:
			values[i] = bandwidth(sum * column->scale, cycles, plan->mhz[column->core]);
			break;
		case NPS_PMU_VALUE:
			values[i] = sum * column->scale;
			break;
		case NPS_PMU_DIFFERENCE:
			values[i] = NPS_MAX(part[0] - part[1], 0.0) * column->scale;
			break;
		}
	}
}
