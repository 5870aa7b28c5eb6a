/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of sampled counters: what those of the device and those of the host have in common. */
#ifndef NPS_COUNTER_CSV_H
#define NPS_COUNTER_CSV_H

#include "export/csv_writer.h"

/* Whether tables are named and cut as msprof does it. */
static inline bool nps_counter__stamped(const struct nps_export *ex)
{
	return ex->model->layout == NPS_LAYOUT_MSPROF;
}

/* VALUE with up to three decimals, N/A if it is not known or no number. */
static inline void nps_counter__cell(struct nps_csv *csv, double value)
{
	if (!isfinite(value))
		nps_csv__lit(csv, "N/A");
	else
		nps_csv__short(csv, nps_thousandths(value));
}

/* VALUE to 9 decimals: as exact as the samples, and without the rounding errors of sums. */
static inline void nps_counter__fine(struct nps_csv *csv, double value)
{
	nps_csv__repr(csv, value < 1e6 && value > -1e6 ? nearbyint(value * 1e9) / 1e9 : value);
}

/* nic, roce. 0 or negative errno. */
int nps_counter__ports(const struct nps_export *ex, int dirfd);

/* ai_core_utilization, ai_vector_core_utilization. 0 or negative errno. */
int nps_counter__utilization(const struct nps_export *ex, int dirfd);

/* host_*, os_runtime_statistic. 0 or negative errno. */
int nps_counter__host(const struct nps_export *ex, int dirfd);

/* os_runtime_statistic, npuscope_threads, npuscope_locks. 0 or negative errno. */
int nps_counter__os(const struct nps_export *ex, int dirfd);

/* dvpp, cpu_usage, process_cpu_usage, sys_mem, process_mem; msprof's layout. 0 or negative errno. */
int nps_counter__system(const struct nps_export *ex, int dirfd);

#endif
