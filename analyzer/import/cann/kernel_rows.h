/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of the model about a kernel, of our own sessions and of CANN's raw data. */
#ifndef NPS_CANN_KERNEL_ROWS_H
#define NPS_CANN_KERNEL_ROWS_H

#include "import/cann/pmu.h"

/* The frequency of the cores of each device over time, from rows of `frequency`. */
struct nps_core_clock {
	size_t next; /* row of `frequency` */
	double mhz[NPS_DEVICES_MAX]; /* 0 unknown */
};

/* The frequency of DEVICE at TIME, MHz, 0 unknown. Times ascend from call to call. */
double nps_core_clock__at(struct nps_core_clock *clock, const struct nps_model *model, uint32_t device,
			  uint64_t time);

/* Appends ROW to `compute`, with the texts of the tensors in LIST (NPS_NONE unknown). 0 or negative errno. */
int nps_kernel__add(struct nps_model *model, struct nps_tensors *tensors, uint32_t list,
		    struct nps_compute_row *row);

/*
 * Appends the counters of row TASK of `task` to `pmu`, one row for each number of PLAN; for the other
 * arguments see nps_pmu__compute(). 0 or negative errno.
 */
int nps_pmu__add(struct nps_model *model, uint32_t task, const struct nps_pmu_plan *plan,
		 const struct nps_run_pmu *pmu, uint32_t blocks, uint32_t mix_blocks, double mhz);

/* Appends RUN to `block`; SHIFT makes its times Unix ns. 0 or negative errno. */
int nps_block__add(struct nps_model *model, const struct nps_block_run *run, uint64_t shift);

#endif
