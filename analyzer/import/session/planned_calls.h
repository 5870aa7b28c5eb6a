/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels that one thread launched for another one, as that of a task queue does (names.h: nps_planner). */
#ifndef NPS_PLANNED_CALLS_H
#define NPS_PLANNED_CALLS_H

#include "import/session/names.h"
#include "model/model.h"

/*
 * Keeps that row CANN of PROC, a launch by thread TID, belongs to RUN, unless TID itself planned the run, or
 * it is not known who did. 0 or -ENOMEM.
 */
int nps_planned_calls__add(struct nps_proc *proc, uint32_t cann, uint32_t tid, const struct nps_op_run *run);

/* Fills `planned` of MODEL with them. 0 or negative errno. */
int nps_planned_calls__fill(struct nps_model *model, const struct nps_session *rec,
			    const struct nps_proc *proc);

#endif
