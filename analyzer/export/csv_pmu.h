/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of kernels as columns: the names that were collected decide which there are (outputs 3.3). */
#ifndef NPS_CSV_PMU_H
#define NPS_CSV_PMU_H

#include "export/table.h"

#define NPS_PMU_MAX 100 /* columns; a viewer refuses more */

struct nps_pmu_pivot {
	const struct nps_model *model;
	uint8_t source; /* of the cells, in the table */
	struct nps_csv_column
		columns[NPS_PMU_MAX + 2]; /* of counters, then cube_utilization as either generation has it */
	char titles[NPS_PMU_MAX][64];
	uint32_t names[NPS_PMU_MAX]; /* text ids in `pmu` */
	size_t counters; /* columns of counters */
	size_t cycles; /* column of aic_total_cycles: cube_utilization is a column; NPS_PMU_MAX: it is not */
	size_t at; /* row of `pmu` */
	uint32_t seen[NPS_PMU_MAX]; /* names in the order of the kernel before, and their columns */
	uint8_t seen_column[NPS_PMU_MAX];
	/* Cells of the row that is being written; NaN: N/A. */
	double values[NPS_PMU_MAX];
	double cube; /* percent */
};

/* Is the counter of that name a time: ns in the model, us in tables? */
bool nps_pmu__is_time(const char *name);

/* Its unit as columns have it: "(us)", "(GB/s)", "(KB)" or "". */
const char *nps_pmu__unit(const char *name);

/* Finds the columns. Their cells are in PIVOT, which the writer of the table has as source SOURCE. */
void nps_pmu__init(struct nps_pmu_pivot *pivot, const struct nps_model *model, uint8_t source);

/* The columns of PIVOT, for as long as PIVOT lives. */
struct nps_csv_columns nps_pmu__columns(const struct nps_pmu_pivot *pivot);

/* Fills the cells of TASK, if it has counters; TASK NPS_NONE has none. Tasks of one device ascend. */
void nps_pmu__read(struct nps_pmu_pivot *pivot, uint32_t task);

#endif
