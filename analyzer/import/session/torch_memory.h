/* SPDX-License-Identifier: BSD-2-Clause */
/* What torch_npu's allocator of device memory reported (event.h: MEMORY). */
#ifndef NPS_SESSION_TORCH_MEMORY_H
#define NPS_SESSION_TORCH_MEMORY_H

#include "import/session/session_model.h"
#include "model/model.h"

/*
 * Fills `memory_record` and `op_memory` of MODEL from the reports of PROC; the operators that allocated are
 * rows of its `torch`. 0 or negative errno.
 */
int nps_session_memory__fill(struct nps_model *model, const struct nps_session *rec,
			     const struct nps_proc *proc);

#endif
