/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of the framework's calls, of the vendor's data as of sessions. */
#ifndef NPS_TORCH_ROWS_H
#define NPS_TORCH_ROWS_H

#include "model/model.h"

/* A row of `torch` in which nothing is known but START, END, GTID, NAME and TYPE. 0 or negative errno. */
int nps_torch_rows__add(struct nps_model *model, uint64_t start, uint64_t end, uint64_t gtid, uint32_t name,
			uint32_t type, size_t *row);

#endif
