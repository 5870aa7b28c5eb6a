/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels of the AI CPUs, from the task logs of a session. */
#ifndef NPS_IMPORT_AICPU_H
#define NPS_IMPORT_AICPU_H

#include "import/session/session_model.h"
#include "model/model.h"

/* Fills MODEL's tables of AI CPU work from the logs of process row PROC, with clocks. 0 or -errno. */
int nps_import__aicpu(struct nps_model *model, const struct nps_session *session, uint32_t proc);

#endif
