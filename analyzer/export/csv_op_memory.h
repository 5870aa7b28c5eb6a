/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of CANN's own operators: allocations paired with their releases. */
#ifndef NPS_CSV_OP_MEMORY_H
#define NPS_CSV_OP_MEMORY_H

#include "model/model.h"

/*
 * Calls EACH with rows of `npu_op_mem`, in order of release; then with those that were never released in
 * order of allocation, with RELEASE NPS_NONE. 0 or -ENOMEM.
 */
int nps_op_memory__pairs(const struct nps_model *model,
			 void (*each)(void *ctx, uint32_t allocation, uint32_t release), void *ctx);

#endif
