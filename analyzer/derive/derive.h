/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from the imported tables. Each function fills its own tables; imported ones do not change. */
#ifndef NPS_DERIVE_H
#define NPS_DERIVE_H

#include "model/model.h"

/*
 * Torch results: sets torch.connection and `link` from torch.correlation, sequence numbers and the tasks'
 * connections, unless `link` was imported. Enqueues, dequeues and operators each by start. 0 or negative
 * errno.
 */
int nps_derive__links(struct nps_model *model);

/*
 * Fills `step` with the iterations that repeat in the launches, if model->step_source allows; see
 * docs/steps.md. Before nps_derive__steps(). 0 or negative errno.
 */
int nps_derive__step_periods(struct nps_model *model);

/*
 * Calls FN for each copy to, from or on a device that an operator ran but does not list among its
 * connections, as in databases of torch_npu: with the operator's row of `torch` and the copy's connection.
 * 0, or what FN returned.
 */
int nps_derive__visit_unlisted_copies(const struct nps_model *model, void *ctx,
				      int (*fn)(void *ctx, uint32_t op, uint32_t connection));

/* Sets the step of tasks and collectives (outputs 6): task.step and comm_op.step. */
int nps_derive__steps(struct nps_model *model);

/*
 * Fills `overlap`, device by device by start, and `step_trace` (outputs 6) with `unmeasured_steps` unless
 * they were imported; if tasks were not measured, step_trace is made anew. Needs the steps. 0 or negative
 * errno.
 */
int nps_derive__overlap(struct nps_model *model);

/*
 * Fills comm_time, comm_bandwidth and comm_matrix (outputs 5.1, 5.2) unless they were imported, of
 * collectives whose tasks have details. Needs the steps.
 */
int nps_derive__comm(struct nps_model *model);

/*
 * Of sessions: adds an operator ProfilerStep#N to `torch` for each step, on the process's main thread, or on
 * a lane that is no thread's if an operator of that thread crosses the bounds of a step. Last, as it moves
 * rows of `torch`. 0 or negative errno.
 */
int nps_derive__step_marks(struct nps_model *model);

/* Names the rows of l2_cache, soc_pmu, page_fault and aicpu by the kernels with their stream and task id. */
int nps_derive__task_names(struct nps_model *model);

#endif
