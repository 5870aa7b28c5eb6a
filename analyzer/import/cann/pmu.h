/* SPDX-License-Identifier: BSD-2-Clause */
/* What an AI core's counters mean (outputs 3.2, 3.3; prof-raw 2.5). */
#ifndef NPS_CANN_PMU_H
#define NPS_CANN_PMU_H

#include "import/cann/capture.h"

#define NPS_PMU_MOST 40 /* numbers of one kernel */
#define NPS_PMU_PARTS 5 /* events that make one number */

/* What was measured on the devices of one kind: names of the numbers and how they are made. */
struct nps_pmu_plan {
	struct nps_pmu_column {
		uint32_t name; /* text */
		uint8_t core; /* 0 AI core, 1 vector core */
		uint8_t kind; /* enum nps_pmu_kind */
		int8_t event[NPS_PMU_PARTS]; /* which of the values; -1: none */
		uint8_t weight[NPS_PMU_PARTS];
		double scale;
	} columns[NPS_PMU_MOST];
	unsigned int n;
	double mhz[2];
	uint32_t cores[2];
};

enum nps_pmu_kind {
	NPS_PMU_TOTAL_TIME,
	NPS_PMU_TOTAL_CYCLES,
	NPS_PMU_RATIO, /* of the cycles */
	NPS_PMU_TIME, /* that part of the total time */
	NPS_PMU_QUOTIENT, /* of two values */
	NPS_PMU_BANDWIDTH,
	NPS_PMU_VALUE, /* the sum as it is */
	NPS_PMU_DIFFERENCE
};

/* Prepares PLAN for the devices of DIR. 0 or -ENOMEM. */
int nps_pmu__plan(struct nps_pmu_plan *plan, const struct nps_cann_dir *dir, struct nps_strings *strings);

/*
 * The numbers of one run of a kernel with these blocks, in VALUES[plan->n]; NaN where unknown. MIX_BLOCKS:
 * blocks on the kind of cores that the kernel was not made for, 0: as many as PMU has records of. BLOCKS: 0
 * unknown. MHZ: frequency of the cores during the run, 0 unknown; bandwidths use the nominal frequency, as
 * the vendor's do.
 */
void nps_pmu__compute(const struct nps_pmu_plan *plan, const struct nps_run_pmu *pmu, uint32_t blocks,
		      uint32_t mix_blocks, double mhz, double *values);

#endif
