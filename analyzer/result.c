/* SPDX-License-Identifier: BSD-2-Clause */
#include "result.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct nps_comm_op *nps_result__comm(const struct nps_result *result, uint32_t row)
{
	return &NPS_AT(&result->proc->comms, struct nps_comm_op, row);
}

const struct nps_group *nps_result__group(const struct nps_result *result, const struct nps_comm_op *op)
{
	uint32_t row = nps_map__get(&result->group_of, (uint64_t)op->group << 32 | op->device);

	return &NPS_AT(&result->groups, struct nps_group, row);
}

static uint64_t plane_key(const struct nps_comm_op *op, const struct nps_task *task)
{
	return nps_hash2((uint64_t)op->group << 32 | op->device, task->stream);
}

uint32_t nps_result__plane(const struct nps_result *result, const struct nps_task *task)
{
	return nps_map__get(&result->plane_of, plane_key(nps_result__comm(result, task->comm), task));
}

const char *nps_task_type(const struct nps_task *task)
{
	switch (task->core) {
	case NPS_SQE_AI_CORE:
		return "AI_CORE";
	case NPS_SQE_AI_CPU:
		return "AI_CPU";
	case NPS_SQE_AIV:
		return "AI_VECTOR_CORE";
	case NPS_SQE_PLACE_HOLDER:
		return "PLACE_HOLDER_SQE";
	case NPS_SQE_EVENT_RECORD:
		return "EVENT_RECORD_SQE";
	case NPS_SQE_EVENT_WAIT:
		return "EVENT_WAIT_SQE";
	case NPS_SQE_NOTIFY_RECORD:
		return "Notify Record";
	case NPS_SQE_NOTIFY_WAIT:
		return "Notify Wait";
	case NPS_SQE_WRITE_VALUE:
		return "Write Value";
	case NPS_SQE_SDMA:
		return task->kind == NPS_TASK_MEMCPY ? "SDMA_SQE" : "SDMA";
	case NPS_SQE_DSA:
		return "DSA_SQE";
	case NPS_SQE_PCIE_DMA:
		return "PCIE_DMA_SQE";
	case NPS_CORE_MIX_AIC:
		return "MIX_AIC";
	case NPS_CORE_MIX_AIV:
		return "MIX_AIV";
	}
	return "UNKNOWN";
}

const char *nps_task_host_type(const struct nps_task *task)
{
	if (task->kind == NPS_TASK_MEMCPY)
		return "MEMCPY_ASYNC";
	switch (task->core) {
	case NPS_SQE_AI_CORE:
		return "KERNEL_AICORE";
	case NPS_SQE_AI_CPU:
		return "KERNEL_AICPU";
	case NPS_SQE_AIV:
		return "KERNEL_AIVEC";
	case NPS_SQE_PLACE_HOLDER:
		return "PLACE_HOLDER";
	case NPS_SQE_EVENT_RECORD:
		return "EVENT_RECORD";
	case NPS_SQE_EVENT_WAIT:
		return "EVENT_WAIT";
	case NPS_SQE_DSA:
		return "STARS_COMMON";
	}
	return nps_task_type(task);
}

const char *nps_task_core(const struct nps_task *task)
{
	return nps_task_type(task);
}

const char *nps_comm_task_type(const struct nps_task *task)
{
	switch (task->sqe_type) {
	case NPS_SQE_SDMA:
	case NPS_SQE_PCIE_DMA:
		return "Memcpy";
	case NPS_SQE_NOTIFY_WAIT:
		return "Notify_Wait";
	case NPS_SQE_NOTIFY_RECORD:
	case NPS_SQE_WRITE_VALUE:
		return "Notify_Record";
	}
	return nps_task_type(task);
}

const char *nps_memcpy_operation(uint8_t operation)
{
	static const char *const names[] = { "host to host",	  "host to device",   "device to host",
					     "device to device",  "managed memory",   "addr device to device",
					     "host to device ex", "device to host ex" };

	return operation < NPS_ARRAY_SIZE(names) ? names[operation] : "other";
}

/* Sorts the uint64_t-keyed rows that KEYS[0..n) name; KEYS has room for 2 n. */
static int order_comms(struct nps_result *r)
{
	size_t n = r->proc->comms.len, kept = 0;
	struct nps_key *keys = calloc(2 * n + 1, sizeof(*keys));
	int err = keys ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n; i++)
		if (nps_result__comm(r, i)->tasks)
			keys[kept++] = (struct nps_key){ .key = nps_result__comm(r, i)->start, .row = i };
	if (!err) {
		nps_sort_keys(keys, keys + kept, kept);
		err = nps_vec__resize(&r->comm_order, kept);
	}
	for (size_t i = 0; !err && i < kept; i++)
		NPS_AT(&r->comm_order, uint32_t, i) = keys[i].row;
	free(keys);
	return err;
}

static int add_group(struct nps_result *r, const struct nps_comm_op *op)
{
	uint64_t key = (uint64_t)op->group << 32 | op->device;
	struct nps_group *group;

	if (nps_map__get(&r->group_of, key) != NPS_NONE)
		return 0;
	group = nps_vec__push(&r->groups);
	if (!group)
		return -errno;
	group->text = op->group;
	group->device = op->device;
	return nps_map__put(&r->group_of, key, r->groups.len - 1);
}

static int make_lanes(struct nps_result *r)
{
	uint32_t lane = 0;
	int err = 0;

	for (size_t i = 0; !err && i < r->comm_order.len; i++)
		err = add_group(r, nps_result__comm(r, NPS_AT(&r->comm_order, uint32_t, i)));
	for (size_t i = 0; !err && i < r->ntasks; i++) {
		const struct nps_task *task = &r->tasks[i];
		const struct nps_comm_op *op;
		struct nps_group *group;

		if (task->comm == NPS_NONE)
			continue;
		op = nps_result__comm(r, task->comm);
		if (nps_map__get(&r->plane_of, plane_key(op, task)) != NPS_NONE)
			continue;
		group = (struct nps_group *)nps_result__group(r, op);
		err = nps_map__put(&r->plane_of, plane_key(op, task), group->planes++);
	}
	for (size_t i = 0; i < r->groups.len; i++) {
		struct nps_group *group = &NPS_AT(&r->groups, struct nps_group, i);

		group->lane = lane;
		lane += 1 + group->planes;
	}
	return err;
}

/* Compute tasks and collectives merged by start; both lists are sorted. */
static int make_kernels(struct nps_result *r)
{
	size_t t = 0, c = 0;

	for (;;) {
		const struct nps_comm_op *op =
			c < r->comm_order.len ? nps_result__comm(r, NPS_AT(&r->comm_order, uint32_t, c))
					      : NULL;
		struct nps_kernel *row;
		bool comm;

		while (t < r->ntasks &&
		       (r->tasks[t].kind != NPS_TASK_COMPUTE || r->tasks[t].comm != NPS_NONE))
			t++;
		if (t == r->ntasks && !op)
			return 0;
		comm = op && (t == r->ntasks || op->start < r->tasks[t].start);
		row = nps_vec__push(&r->kernels);
		if (!row)
			return -errno;
		*row = (struct nps_kernel){ comm ? op->start : r->tasks[t].start,
					    comm ? NPS_AT(&r->comm_order, uint32_t, c) : (uint32_t)t, comm };
		if (comm)
			c++;
		else
			t++;
	}
}

/* The measured intervals of one device by step: SPANS[type]. The span's type holds the step. */
static int collect(const struct nps_result *r, uint32_t device, struct nps_vec *compute, struct nps_vec *comm)
{
	compute->len = comm->len = 0;
	for (size_t i = 0; i < r->kernels.len; i++) {
		const struct nps_kernel *k = &NPS_AT(&r->kernels, struct nps_kernel, i);
		const struct nps_task *task = k->comm ? NULL : &r->tasks[k->row];
		const struct nps_comm_op *op = k->comm ? nps_result__comm(r, k->row) : NULL;
		struct nps_span *span;

		assert(op || task);
		if ((op ? op->device : task->device) != device ||
		    !(op ? op->measured : nps_task__measured(task)))
			continue;
		span = nps_vec__push(op ? comm : compute);
		if (!span)
			return -errno;
		*span = op ? (struct nps_span){ op->start, op->end, op->step, k->row }
			   : (struct nps_span){ task->start, task->end, task->step, k->row };
	}
	return 0;
}

static int at_least_one(struct nps_result *r, uint32_t device, size_t from, uint64_t when)
{
	bool have[4] = { false };

	for (size_t i = from; i < r->overlap.len; i++)
		have[NPS_AT(&r->overlap, struct nps_span, i).type] = true;
	for (uint32_t type = 0; type < 4; type++) {
		struct nps_span *span;

		if (have[type] || type == NPS_OVERLAP_COMM)
			continue;
		span = nps_vec__push(&r->overlap); /* Insight refuses the view if one of them is absent */
		if (!span)
			return -errno;
		*span = (struct nps_span){ when, when, type, device };
	}
	return 0;
}

static bool is_receive(const struct nps_result *r, const struct nps_comm_op *op)
{
	return !strncmp(nps_strings__get(&r->model->strings, op->name), "hcom_receive", 12);
}

/* Sorts the spans by step, keeping their order, and notes where each step begins. */
static int by_step(const struct nps_vec *spans, size_t nsteps, struct nps_vec *sorted, size_t *begin)
{
	const struct nps_span *from = spans->data;
	int err;

	memset(begin, 0, (nsteps + 1) * sizeof(*begin));
	for (size_t i = 0; i < spans->len; i++)
		if (from[i].type < nsteps)
			begin[from[i].type + 1]++;
	for (size_t s = 0; s < nsteps; s++)
		begin[s + 1] += begin[s];
	sorted->len = 0;
	err = nps_vec__resize(sorted, begin[nsteps]);
	for (size_t i = 0; !err && i < spans->len; i++)
		if (from[i].type < nsteps)
			NPS_AT(sorted, struct nps_span, begin[from[i].type]++) = from[i];
	memmove(begin + 1, begin, nsteps * sizeof(*begin));
	begin[0] = 0;
	return err;
}

static int step_row(struct nps_result *r, uint32_t device, uint32_t step, uint64_t origin,
		    const struct nps_span *compute, size_t ncompute, const struct nps_span *comm,
		    size_t ncomm)
{
	struct nps_step_row *row = nps_vec__push(&r->steps);

	if (!row)
		return -errno;
	row->step = step;
	row->device = device;
	for (size_t i = 0; i < ncomm; i++)
		if (is_receive(r, nps_result__comm(r, comm[i].device)))
			row->bubble += comm[i].end - comm[i].start;
	if (nps_overlap__build(compute, ncompute, comm, ncomm, device, NULL, &row->sums))
		return -ENOMEM;
	if (row->sums.first > origin)
		row->preparing = row->sums.first - origin;
	return 0;
}

static int make_steps(struct nps_result *r, uint32_t device, struct nps_vec *compute, struct nps_vec *comm)
{
	const struct nps_step *steps = r->proc->steps.data;
	size_t n = r->proc->steps.len;
	struct nps_vec a, b;
	size_t *at;
	int err;

	if (!n) {
		uint64_t origin = r->proc->cann.len ? NPS_AT(&r->proc->cann, struct nps_cann,
							     NPS_AT(&r->proc->cann_order, uint32_t, 0))
							      .start
						    : 0;

		return step_row(r, device, NPS_NONE, origin, compute->data, compute->len, comm->data,
				comm->len);
	}
	nps_vec__init(&a, r->model->tmpfd, sizeof(struct nps_span));
	nps_vec__init(&b, r->model->tmpfd, sizeof(struct nps_span));
	at = calloc(2 * (n + 1), sizeof(*at));
	err = at ? by_step(compute, n, &a, at) : -ENOMEM;
	if (!err)
		err = by_step(comm, n, &b, at + n + 1);
	for (size_t s = 0; !err && s < n; s++) {
		const size_t *ca = at + s, *cb = at + n + 1 + s;

		err = step_row(r, device, s, steps[s].start, (struct nps_span *)a.data + ca[0], ca[1] - ca[0],
			       (struct nps_span *)b.data + cb[0], cb[1] - cb[0]);
	}
	free(at);
	nps_vec__free(&a);
	nps_vec__free(&b);
	return err;
}

static int analyse_device(struct nps_result *r, uint32_t device)
{
	struct nps_overlap_sums sums;
	struct nps_vec compute, comm;
	size_t from = r->overlap.len;
	int err;

	nps_vec__init(&compute, r->model->tmpfd, sizeof(struct nps_span));
	nps_vec__init(&comm, r->model->tmpfd, sizeof(struct nps_span));
	err = collect(r, device, &compute, &comm);
	if (!err)
		err = nps_overlap__build(compute.data, compute.len, comm.data, comm.len, device, &r->overlap,
					 &sums);
	if (!err)
		err = at_least_one(r, device, from, compute.len || comm.len ? sums.first : r->first);
	if (!err)
		err = make_steps(r, device, &compute, &comm);
	nps_vec__free(&compute);
	nps_vec__free(&comm);
	return err;
}

static void cover(struct nps_result *r, uint64_t start, uint64_t end)
{
	r->first = NPS_MIN(r->first, start);
	r->last = NPS_MAX(r->last, end);
}

static void find_window(struct nps_result *r)
{
	const struct nps_proc *p = r->proc;

	r->first = r->model->begin;
	r->last = r->model->end;
	for (size_t i = 0; i < r->ntasks; i++)
		cover(r, r->tasks[i].start, r->tasks[i].end);
	for (size_t i = 0; i < p->cann.len; i++)
		cover(r, NPS_AT(&p->cann, struct nps_cann, i).start,
		      NPS_AT(&p->cann, struct nps_cann, i).end);
	for (size_t i = 0; i < p->os_calls.len; i++)
		cover(r, NPS_AT(&p->os_calls, struct nps_os_call, i).start,
		      NPS_AT(&p->os_calls, struct nps_os_call, i).end);
	for (size_t i = 0; i < p->steps.len; i++)
		cover(r, NPS_AT(&p->steps, struct nps_step, i).start,
		      NPS_AT(&p->steps, struct nps_step, i).end);
}

/* Rows of VEC, whose first field is a time, in its order. */
static int sort_rows(struct nps_vec *vec)
{
	struct nps_vec keys, sorted;
	size_t n = vec->len;
	int err;

	nps_vec__init(&keys, vec->dirfd, sizeof(struct nps_key));
	nps_vec__init(&sorted, vec->dirfd, vec->elem);
	err = n >= NPS_NONE ? -EOVERFLOW : nps_vec__resize(&keys, 2 * n);
	if (!err)
		err = nps_vec__resize(&sorted, n);
	if (!err && n) {
		struct nps_key *key = keys.data;

		for (size_t i = 0; i < n; i++)
			key[i] = (struct nps_key){ .key = *(uint64_t *)((char *)vec->data + i * vec->elem),
						   .row = i };
		nps_sort_keys(key, key + n, n);
		for (size_t i = 0; i < n; i++)
			memcpy((char *)sorted.data + i * vec->elem,
			       (char *)vec->data + key[i].row * vec->elem, vec->elem);
		nps_vec__free(vec);
		*vec = sorted;
	} else {
		nps_vec__free(&sorted);
	}
	nps_vec__free(&keys);
	return err;
}

int nps_result__init(struct nps_result *r, struct nps_model *model, uint32_t proc_row)
{
	struct nps_proc *proc = &model->procs[proc_row];
	int err;

	*r = (struct nps_result){ .model = model, .proc = proc, .proc_row = proc_row, .ntasks = proc->tasks };
	r->tasks = proc->tasks ? (struct nps_task *)model->tasks.data + proc->first_task : NULL;
	r->device = proc->devices ? __builtin_ctzll(proc->devices) : 0;
	r->rank = proc->has_rank ? proc->rank : r->device;
	nps_vec__init(&r->comm_order, model->tmpfd, sizeof(uint32_t));
	nps_vec__init(&r->kernels, model->tmpfd, sizeof(struct nps_kernel));
	nps_vec__init(&r->overlap, model->tmpfd, sizeof(struct nps_span));
	nps_vec__init(&r->steps, model->tmpfd, sizeof(struct nps_step_row));
	nps_vec__init(&r->groups, model->tmpfd, sizeof(struct nps_group));
	find_window(r);
	err = order_comms(r);
	if (!err)
		err = make_lanes(r);
	if (!err)
		err = make_kernels(r);
	for (uint32_t device = 0; !err && device < NPS_MAX_DEVICES; device++)
		if (proc->devices >> device & 1)
			err = analyse_device(r, device);
	if (!err)
		err = sort_rows(&r->overlap);
	/* Events of different CPUs interleave in the session. */
	if (!err)
		err = sort_rows(&proc->os_calls);
	if (!err)
		err = sort_rows(&proc->runs);
	return err;
}

void nps_result__free(struct nps_result *r)
{
	nps_vec__free(&r->comm_order);
	nps_vec__free(&r->kernels);
	nps_vec__free(&r->overlap);
	nps_vec__free(&r->steps);
	nps_vec__free(&r->groups);
	nps_map__free(&r->group_of);
	nps_map__free(&r->plane_of);
}
