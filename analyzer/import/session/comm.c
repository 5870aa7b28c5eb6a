/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives: their times follow from their tasks, their names from their order in the group. */
#include "import/session/join.h"

#include "import/session/steps.h"

/* Numbers and names are known; the calls that made them have them as their items. */
static void name_calls(struct nps_proc *proc)
{
	struct nps_cann *calls = proc->cann.data;

	for (size_t i = 0; i < proc->comms.len; i++) {
		struct nps_comm_op *op = &NPS_AT(&proc->comms, struct nps_comm_op, i);

		op->run.connection = calls[op->node].conn;
		op->run.step = nps_steps__at(proc, calls[op->node].start);
		calls[op->node].item = calls[op->launch].item = op->run.name;
	}
}

int nps_comm__finish(struct nps_session *model)
{
	const struct nps_task *tasks = model->tasks.data;

	for (uint32_t p = 0; p < model->nprocs; p++) {
		struct nps_proc *proc = &model->procs[p];
		int err;

		if (!proc->comms.len)
			continue;
		for (size_t i = 0; i < proc->tasks; i++) {
			const struct nps_task *task = &tasks[proc->first_task + i];
			struct nps_collective *run;

			if (task->comm == NPS_NONE)
				continue;
			run = &NPS_AT(&proc->comms, struct nps_comm_op, task->comm).run;
			run->tasks++;
			nps_collective__add_time(run, task->start, task->end, nps_task__measured(task),
						 false);
		}
		err = nps_collectives__number(&proc->comms, &model->strings);
		if (err)
			return err;
		name_calls(proc);
	}
	return 0;
}
