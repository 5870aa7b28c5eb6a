/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_IMPORT_TRACE_TABLES_H
#define NPS_IMPORT_TRACE_TABLES_H

#include "model/model.h"

/*
 * Adds to the model of the trace PATH what the tables beside it have: types, shapes and cores of kernels
 * (kernel_details.csv, op_summary_*.csv), memory (memory_record.csv), waits and links of collectives
 * (communication.json, communication_matrix.json). 0 or negative errno; tables that are damaged are
 * counted.
 */
int nps_trace__import_tables(struct nps_model *m, const char *path);

#endif
