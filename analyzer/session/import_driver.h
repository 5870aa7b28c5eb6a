/* SPDX-License-Identifier: BSD-2-Clause */
/* What the NPU's driver did for a process. */
#ifndef NPS_IMPORT_DRIVER_H
#define NPS_IMPORT_DRIVER_H

#include "event.h"
#include "model/model.h"
#include "session/recording.h"

/* Keeps an event of one of the kinds DRIVER to DRIVER_DMA. 0 or a negative errno. */
int nps_driver__keep(struct nps_proc *proc, const struct nps_event *event);

/*
 * Fills MODEL's tables driver, driver_task and driver_cqe; PROC's rows are sorted. An SQE belongs to the
 * latest submission of its device, stream and task before it; in a container, where devices have other
 * numbers, nothing is joined. 0 or a negative errno.
 */
int nps_driver__fill(struct nps_model *model, const struct nps_recording *rec, const struct nps_proc *proc);

/* MODEL's span covers what these tables hold. */
void nps_driver__cover(struct nps_model *model);

#endif
