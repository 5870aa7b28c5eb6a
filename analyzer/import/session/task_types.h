/* SPDX-License-Identifier: BSD-2-Clause */
/* The vendor's name of a device task, from its queue entry and its log. */
#ifndef NPS_TASK_TYPES_H
#define NPS_TASK_TYPES_H

#include "import/session/session_model.h"

/* `Task Type` of the trace and the accelerator core; the host's word for it (outputs 2.4, 4.5). */
const char *nps_task_type(const struct nps_task *task);
const char *nps_task_host_type(const struct nps_task *task);

/* Task type of a collective's task, as the plane lanes name it. */
const char *nps_comm_task_type(const struct nps_task *task);

#endif
