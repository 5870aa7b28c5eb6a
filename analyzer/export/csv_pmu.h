/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of kernels as columns: which there are follows from the names that were collected (outputs 3.3). */
#ifndef NPS_CSV_PMU_H
#define NPS_CSV_PMU_H

#include "base/csv_writer.h"

#define NPS_PMU_MAX 100 /* columns; a viewer refuses more */

struct nps_pmu_column {
	uint32_t name; /* text id in `pmu` */
	uint8_t kind; /* enum of csv_pmu.c */
	char header[64];
};

struct nps_pmu_pivot {
	const struct nps_model *model;
	struct nps_pmu_column columns[NPS_PMU_MAX];
	size_t ncolumns;
	uint32_t cycles; /* text id of aic_total_cycles: cube_utilization is a column; NPS_NONE: it is not */
	size_t at; /* row of `pmu` */
	double values[NPS_PMU_MAX];
	uint32_t seen[NPS_PMU_MAX]; /* names in the order of the kernel before, and their columns */
	uint8_t seen_column[NPS_PMU_MAX];
};

/* Is the counter of that name a time: ns in the model, us in tables? */
bool nps_pmu__is_time(const char *name);

/* Its unit as columns have it: "(us)", "(GB/s)", "(KB)" or "". */
const char *nps_pmu__unit(const char *name);

/* Finds the columns. */
void nps_pmu__init(struct nps_pmu_pivot *pivot, const struct nps_model *model);

/* Appends ",name,name" to HEADER of SIZE bytes. */
void nps_pmu__header(const struct nps_pmu_pivot *pivot, char *header, size_t size);

/* Cells of TASK, N/A if it has no counters; TASK NPS_NONE has none. Tasks of one device ascend. */
void nps_pmu__cells(struct nps_pmu_pivot *pivot, struct nps_csv *csv, uint32_t task);

#endif
