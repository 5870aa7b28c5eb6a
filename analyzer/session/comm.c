/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives: their times follow from their tasks, their names from their order in the group. */
#include "session/join.h"

#include "import/common/group_hash.h"
#include "session/steps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static void add_task(struct nps_comm_op *op, const struct nps_task *task)
{
	bool measured = nps_task__measured(task);

	/* Measured tasks decide; without any, the op stands at its first submission, without a length. */
	if (measured && !op->measured) {
		op->start = task->start;
		op->end = task->end;
	} else if (measured) {
		op->start = NPS_MIN(op->start, task->start);
		op->end = NPS_MAX(op->end, task->end);
	} else if (!op->tasks || (!op->measured && task->start < op->start)) {
		op->start = op->end = task->start;
	}
	op->tasks++;
	op->measured += measured;
}

static int name_ops(struct nps_recording *model, struct nps_proc *proc, struct nps_vec *keys)
{
	struct nps_comm_op *ops = proc->comms.data;
	struct nps_map seq = { 0 };
	size_t n = proc->comms.len;
	struct nps_key *key;
	int err;

	keys->len = 0;
	err = nps_vec__resize(keys, 2 * n);
	key = keys->data;
	for (size_t i = 0; !err && i < n; i++)
		key[i] = (struct nps_key){ .key = ops[i].call_start, .row = i };
	if (!err)
		nps_sort_keys(key, key + n, n);
	for (size_t i = 0; !err && i < n; i++) {
		struct nps_comm_op *op = &ops[key[i].row];
		uint32_t number = nps_map__get(&seq, op->group);
		char text[256];

		number = number == NPS_NONE ? 0 : number + 1;
		err = nps_map__put(&seq, op->group, number);
		snprintf(text, sizeof(text), "%s_%03u_%u_1", nps_strings__get(&model->strings, op->type),
			 (unsigned int)(nps_group_hash(nps_strings__get(&model->strings, op->group)) % 1000),
			 number);
		op->name = nps_strings__addz(&model->strings, text);
		op->conn = NPS_AT(&proc->cann, struct nps_cann, op->node).conn;
		op->step = nps_steps__at(proc, NPS_AT(&proc->cann, struct nps_cann, op->node).start);
		NPS_AT(&proc->cann, struct nps_cann, op->node).item = op->name;
		NPS_AT(&proc->cann, struct nps_cann, op->launch).item = op->name;
	}
	nps_map__free(&seq);
	return err;
}

int nps_comm__finish(struct nps_recording *model)
{
	const struct nps_task *tasks = model->tasks.data;
	struct nps_vec keys;
	int err = 0;

	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	for (uint32_t p = 0; !err && p < model->nprocs; p++) {
		struct nps_proc *proc = &model->procs[p];

		if (!proc->comms.len)
			continue;
		for (size_t i = 0; i < proc->tasks; i++) {
			const struct nps_task *task = &tasks[proc->first_task + i];

			if (task->comm != NPS_NONE)
				add_task(&NPS_AT(&proc->comms, struct nps_comm_op, task->comm), task);
		}
		err = name_ops(model, proc, &keys);
	}
	nps_vec__free(&keys);
	return err;
}
