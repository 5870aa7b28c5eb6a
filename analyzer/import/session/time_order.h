/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of different CPUs interleave in a session; who walks those of a process needs them by time. */
#ifndef NPS_TIME_ORDER_H
#define NPS_TIME_ORDER_H

#include "import/session/session_model.h"

/*
 * Sorts PROC's os_calls, os_spans, os_locks, runs, irqs, drivers and marks by start; those of the same start
 * stay as they were. 0 or a negative errno.
 */
int nps_proc__sort(struct nps_proc *proc);

#endif
