/* SPDX-License-Identifier: BSD-2-Clause */
/* What the NPU's driver did for a process. */
#ifndef NPS_IMPORT_DRIVER_H
#define NPS_IMPORT_DRIVER_H

#include "import/session/session_model.h"
#include "model/model.h"

/*
 * Fills MODEL's tables driver, driver_task and driver_cqe; PROC's rows are sorted. An SQE belongs to the
 * latest submission of its device, stream and task before it; in a container, where devices have other
 * numbers, nothing is joined. 0 or a negative errno.
 */
int nps_driver__fill(struct nps_model *model, const struct nps_session *rec, const struct nps_proc *proc);

/* MODEL's span covers what these tables hold. */
void nps_driver__cover(struct nps_model *model);

#endif
