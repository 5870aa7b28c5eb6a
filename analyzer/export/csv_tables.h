/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of both layouts. Each function writes its file, or none without rows; 0 or negative errno. */
#ifndef NPS_CSV_TABLES_H
#define NPS_CSV_TABLES_H

#include "export/csv_writer.h"

#include <stdbool.h>

/* kernel_details of the torch layout (base columns only at level 0) or op_summary of msprof's. */
int nps_csv__kernels(const struct nps_export *ex, int dirfd);

/* Sums by kind of operator, call and collective. */
int nps_csv__op_statistic(const struct nps_export *ex, int dirfd);
int nps_csv__api_statistic(const struct nps_export *ex, int dirfd);
int nps_csv__communication_statistic(const struct nps_export *ex, int dirfd);

/* Iterations of graphs; msprof's layout. */
int nps_csv__step_trace(const struct nps_export *ex, int dirfd);

/* Torch layout: the framework's operators. */
int nps_csv__operator_details(const struct nps_export *ex, int dirfd);

/* Torch layout: MB, times of allocators. */
int nps_csv__torch_memory(const struct nps_export *ex, int dirfd);
/* msprof's layout: KB, CANN's own operators. */
int nps_csv__msprof_memory(const struct nps_export *ex, int dirfd);

/* Tables of single tasks, and of AI CPU: data_preprocess, in msprof's layout aicpu. */
int nps_csv__task_time(const struct nps_export *ex, int dirfd);
int nps_csv__task_counters(const struct nps_export *ex, int dirfd);
int nps_csv__aicpu(const struct nps_export *ex, int dirfd);

/*
 * Rows of a table grouped by a key, ascending, otherwise in their order: `order` has a row number each, or
 * is empty if they are in order already.
 */
struct nps_csv_groups {
	struct nps_vec order; /* uint32_t */
	size_t len;
};

/* Groups LEN rows of MODEL by KEY. 0 or negative errno; the caller frees groups->order in either case. */
int nps_csv__group(struct nps_csv_groups *groups, const struct nps_model *model, size_t len,
		   uint64_t (*key)(const void *ctx, size_t row), const void *ctx);

/* Appends a row to the order of GROUPS. 0 or negative errno. */
int nps_csv__push_row(struct nps_csv_groups *groups, uint32_t row);

static inline uint32_t nps_csv__grouped(const struct nps_csv_groups *groups, size_t i)
{
	return groups->order.len ? NPS_AT(&groups->order, uint32_t, i) : i;
}

#endif
