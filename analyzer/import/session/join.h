/* SPDX-License-Identifier: BSD-2-Clause */
/* The joins that make the model: calls -> operators -> submissions -> device tasks. */
#ifndef NPS_JOIN_H
#define NPS_JOIN_H

#include "import/session/names.h"

/*
 * Walks every thread's calls in their nesting. Fills the processes' CANN rows and collectives,
 * model->subs (in no order) and model->syncs. 0 or a negative errno.
 */
int nps_nest__run(struct nps_session *model, struct nps_names *names);

/* Numbers the CANN rows of every process by start (connection ids), fills cann_order. */
int nps_nest__number(struct nps_session *model);

/*
 * Reads the device logs, and joins tasks with submissions. A submission without a device record becomes a
 * task with host bounds. Fills model->tasks, sorted by process and start.
 */
int nps_join__tasks(struct nps_session *model);

/* Times, names and sequence numbers of the collectives. */
int nps_comm__finish(struct nps_session *model);

/* Text of a task that is no kernel: `EVENT_RECORD`, `Notify Wait`, ... (outputs 2.4). */
uint32_t nps_task_type_name(struct nps_session *model, unsigned int sqe_type);

#endif
