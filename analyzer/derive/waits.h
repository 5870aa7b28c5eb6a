/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread waited for a run on a CPU: one reading of `run` for the trace, the databases and the sums. */
#ifndef NPS_WAITS_H
#define NPS_WAITS_H

#include "model/model.h"

#include <stdbool.h>

#define NPS_STATE_UNINTERRUPTIBLE 0x2U
#define NPS_STATE_EXITED 0x10U /* the thread's last run */

/* pid << 32 | tid of a run's thread. */
static inline uint64_t nps_run__gtid(const struct nps_model *m, size_t row)
{
	return (uint64_t)(m->run.pid[row] ? m->run.pid[row] : m->pid) << 32 | m->run.tid[row];
}

/* Asleep in [left, woken), runnable in [woken, start). */
struct nps_wait {
	uint64_t left, woken, start;
	bool known; /* else there is no more than `start` */
};

/*
 * The wait before run ROW; PREVIOUS: the thread's run before it, NPS_NONE if none was seen. A thread
 * without a wake-up had not been asleep: if its leaving the CPU was recorded so is its wake-up, unless that
 * came while it was still leaving.
 */
static inline struct nps_wait nps_run__wait(const struct nps_model *m, size_t row, uint32_t previous)
{
	const struct nps_run_table *run = &m->run;
	struct nps_wait w = { run->left[row], run->woken[row], run->start[row], false };

	if (!w.left || w.left > w.start || w.left < m->start)
		return w;
	w.known = true;
	if (w.woken < w.left || w.woken > w.start)
		w.woken = previous == NPS_NONE || !run->state[previous] ? w.left : w.start;
	return w;
}

#endif
