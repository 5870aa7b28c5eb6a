/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/planned_calls.h"

#include <errno.h>

int nps_planned_calls__add(struct nps_proc *proc, uint32_t cann, uint32_t tid, const struct nps_op_run *run)
{
	struct nps_planned_call *call;

	if (!run->planner.time || run->planner.tid == tid)
		return 0;
	call = nps_vec__push(&proc->planned);
	if (!call)
		return -errno;
	*call = (struct nps_planned_call){ run->planner, cann };
	return 0;
}

static int planned_call_fill(struct nps_model *model, const struct nps_session *rec,
			     const struct nps_proc *proc, const struct nps_planned_call *call)
{
	const struct nps_cann *launch = &NPS_AT(&proc->cann, struct nps_cann, call->cann);

	return nps_planned_table__add(
		&model->planned,
		&(struct nps_planned_row){ .time = nps_session__real(rec, call->planner.time),
					   .gtid = nps_proc__gtid(proc, call->planner.tid),
					   .connection = launch->conn });
}

int nps_planned_calls__fill(struct nps_model *model, const struct nps_session *rec,
			    const struct nps_proc *proc)
{
	size_t n = proc->planned.len;
	struct nps_vec keys;
	struct nps_key *key;
	int err;

	if (!n)
		return 0;
	if (n >= NPS_NONE / 2)
		return -EOVERFLOW;
	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	err = nps_vec__resize(&keys, 2 * n);
	if (err)
		goto out;
	key = keys.data;
	for (size_t i = 0; i < n; i++)
		key[i] = (struct nps_key){
			.key = NPS_AT(&proc->planned, struct nps_planned_call, i).planner.time, .row = i
		};
	nps_sort_keys(key, key + n, n);
	for (size_t i = 0; !err && i < n; i++)
		err = planned_call_fill(model, rec, proc,
					&NPS_AT(&proc->planned, struct nps_planned_call, key[i].row));
out:
	nps_vec__free(&keys);
	return err;
}
