/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/os_thread.h"

int nps_os_thread__add(struct nps_model *m, uint64_t gtid, uint32_t name, size_t *row)
{
	struct nps_os_thread_table *t = &m->os_thread;
	int err = nps_table__add(&t->t, row);

	if (err)
		return err;
	t->gtid[*row] = gtid;
	t->name[*row] = name;
	t->running[*row] = t->runnable[*row] = t->sleeping[*row] = t->blocked[*row] = NPS_NULL;
	t->slices[*row] = t->waits[*row] = t->preemptions[*row] = NPS_NULL;
	t->migrations[*row] = t->cpus[*row] = NPS_NULL;
	t->waker_comm[*row] = t->preemptor_comm[*row] = NPS_NONE;
	return 0;
}
