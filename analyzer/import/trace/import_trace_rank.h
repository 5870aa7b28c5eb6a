/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_IMPORT_TRACE_RANK_H
#define NPS_IMPORT_TRACE_RANK_H

#include "model/model.h"

/* Reads the rank from profiler_info_{rank}.json beside the trace PATH or above it, if there is only one. */
void nps_trace__find_rank(struct nps_model *m, const char *path);

#endif
