/* SPDX-License-Identifier: BSD-2-Clause */
/* What the types of tasks in a trace mean. */
#ifndef NPS_IMPORT_TRACE_TYPES_H
#define NPS_IMPORT_TRACE_TYPES_H

#include "model/model.h"

#include <stdbool.h>

/*
 * The class of a task NAME of the layer Ascend Hardware whose "Task Type" is TYPE. *KNOWN: false if it is
 * not known whether tasks of that type compute.
 */
enum nps_task_class nps_trace__task_class(const char *type, const char *name, bool *known);

#endif
