/* SPDX-License-Identifier: BSD-2-Clause */
/* Submissions: what each SQE is, and which call and collective it belongs to. */
#include "import/session/nest_walk.h"

#include "import/common/group_hash.h"
#include "import/session/planned_calls.h"
#include "import/session/sqe_types.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint8_t memcpy_operation(const struct nps_event *ev)
{
	uint64_t kind;

	if (nps_event_arg(ev, NPS_M_KIND_ACL, &kind)) {
		kind &= UINT32_MAX;
		return kind <= 3 ? kind : kind == 6 || kind == 7 ? 3 : 255;
	}
	if (nps_event_arg(ev, NPS_M_KIND_RT, &kind)) {
		kind &= UINT32_MAX;
		return kind <= 7 ? kind : 255;
	}
	return 255;
}

/* As ENUM_HCCL_DATA_TYPE has them: 13 is not given to any type. */
static uint16_t hccl_data_type(uint32_t type)
{
	return type < 18 && type != 13 ? type : 65535;
}

/*
 * The time of a submission of collective F for rows that have to nest: that of the call with which F
 * submitted, if there was one, as that call has a row too.
 */
static void span_in(const struct nps_walk *w, const struct nps_frame *f, const struct nps_sub *sub,
		    uint64_t *start, uint64_t *end)
{
	const struct nps_frame *inner = f + 1;

	*start = sub->begin;
	*end = w->sent.n ? sub->begin
			 : sub->end; /* the end of the whole collective is none of the submission's */
	if (inner >= w->stack + w->depth)
		return;
	*start = inner->ev->start;
	*end = inner->end;
}

/* The collective that frame F stands for, made at its first submission. */
static int sub_collective(struct nps_walk *w, struct nps_frame *f, struct nps_sub *sub)
{
	struct nps_comm_op *op;
	struct nps_cann *row;
	uint64_t comm = 0, value, key, start, end;
	bool known;

	span_in(w, f, sub, &start, &end);
	if (f->comm == NPS_NONE) {
		op = nps_vec__push(&w->proc->comms);
		if (!op)
			return -errno;
		f->comm = w->proc->comms.len - 1;
		known = nps_event_arg(f->ev, NPS_M_COMM, &comm);
		key = nps_names__key(w->proc_row, comm);
		op->run = (struct nps_collective){ .begin = f->ev->start,
						   .count = UINT64_MAX,
						   .algorithm = NPS_NONE,
						   .name = NPS_NONE,
						   .model = NPS_NO_ID,
						   .device = sub->device,
						   .dtype = NPS_HCCL_NOT_KNOWN,
						   .step = NPS_NONE,
						   .relay = 2, /* decided inside HCCL */
						   .retry = 2 };
		if (!known)
			op->run.group = nps_strings__addz(&w->model->strings, "comm(not read)");
		else if (nps_history__near(&w->names->groups, key, f->ev->start, &value))
			op->run.group = value;
		else
			op->run.group = nps_strings__addf(&w->model->strings, "comm@0x%" PRIx64, comm);
		op->run.hash = nps_group_hash(nps_strings__get(&w->model->strings, op->run.group));
		op->run.numbered_with = op->run.group;
		if (known && nps_history__near(&w->names->ranks, key, f->ev->start, &value))
			op->run.ranks = value;
		nps_event_arg(f->ev, NPS_M_COUNT, &op->run.count);
		if (nps_event_arg(f->ev, NPS_M_DTYPE, &value))
			op->run.dtype = hccl_data_type(value);
		op->run.type =
			nps_strings__addf(&w->model->strings, "hcom_%s_", nps_probe_collective(f->ev->probe));
		row = nps_walk__row(w, start, end, NPS_LAYER_NODE, w->node_name);
		op->node = nps_walk__last_row(w);
		if (!row || !nps_walk__row(w, start, end, NPS_LAYER_COMM, w->node_name))
			return -ENOMEM;
		op->launch = nps_walk__last_row(w);
	}
	op = &NPS_AT(&w->proc->comms, struct nps_comm_op, f->comm);
	row = w->proc->cann.data;
	row[op->node].end = row[op->launch].end = NPS_MAX(row[op->node].end, end);
	sub->comm = f->comm;
	sub->cann = op->node;
	return 0;
}

static const char *const other_names[64] = {
	[NPS_SQE_AI_CORE] = "AI_CORE",
	[NPS_SQE_AI_CPU] = "AI_CPU",
	[NPS_SQE_AIV] = "AI_VECTOR_CORE",
	[NPS_SQE_DSA] = "DSA",
	[NPS_SQE_PLACE_HOLDER] = "PLACE_HOLDER",
	[NPS_SQE_EVENT_RECORD] = "EVENT_RECORD",
	[NPS_SQE_EVENT_WAIT] = "EVENT_WAIT",
	[NPS_SQE_NOTIFY_RECORD] = "Notify Record",
	[NPS_SQE_NOTIFY_WAIT] = "Notify Wait",
	[NPS_SQE_WRITE_VALUE] = "Write Value",
	[NPS_SQE_SDMA] = "SDMA",
	[NPS_SQE_PCIE_DMA] = "PCIE_DMA",
	[NPS_SQE_DVPP] = "DVPP",
	[NPS_SQE_CMO] = "CMO",
	[NPS_SQE_CCU] = "CCU",
	[NPS_SQE_CONDITION] = "CONDITION",
	[NPS_SQE_UNLISTED] = "UNKNOWN",
};

uint32_t nps_task_type_name(struct nps_session *model, unsigned int sqe_type)
{
	if (sqe_type < 64 && other_names[sqe_type])
		return nps_strings__addz(&model->strings, other_names[sqe_type]);
	return nps_strings__addf(&model->strings, "SQE_TYPE_%u", sqe_type);
}

static int sub_kernel(struct nps_walk *w, struct nps_sub *sub, const struct nps_frame *launch)
{
	uint64_t start = launch ? launch->ev->start : sub->begin, end = launch ? launch->end : sub->end;
	struct nps_cann *row = nps_walk__row(w, start, end, NPS_LAYER_NODE, w->node_name);
	struct nps_pending_name *p;
	int err = 0;

	if (!row)
		return -ENOMEM;
	sub->kind = NPS_TASK_COMPUTE;
	sub->name = launch && launch->name != NPS_NONE ? launch->name
						       : nps_task_type_name(w->model, sub->sqe_type);
	sub->type = launch && launch->type != NPS_NONE ? launch->type : sub->name;
	sub->function = launch ? launch->function : NPS_NONE;
	sub->cann = nps_walk__last_row(w);
	row->item = sub->name;
	w->proc->launches++;
	if (launch && launch->run != NPS_NONE) {
		sub->run = launch->run;
		NPS_AT(&w->names->runs, struct nps_op_run, sub->run).launches++;
		err = nps_planned_calls__add(w->proc, sub->cann, w->tid,
					     &NPS_AT(&w->names->runs, struct nps_op_run, sub->run));
	} else if (w->run) {
		w->run->strays++;
	}
	if (err || !launch || !w->learn_later)
		return err;
	p = nps_vec__push(&w->pending);
	if (!p)
		return -errno;
	*p = (struct nps_pending_name){ w->handle, sub - (struct nps_sub *)w->model->subs.data, w->proc_row,
					sub->cann, w->api };
	nps_walk__extend_op(w, launch->end);
	return 0;
}

/* Whether the copy is done when the call returns. */
static bool copy_blocks(unsigned int probe)
{
	return probe == NPS_PROBE_MEMCPY || probe == NPS_PROBE_MEMCPY_2D || probe == NPS_PROBE_RT_MEMCPY;
}

/* A copy is named as the vendor names it, and a blocking copy to the host is a synchronisation. */
static int sub_copy(struct nps_walk *w, struct nps_sub *sub, const struct nps_frame *call)
{
	struct nps_sync *sync;
	uint64_t rows;

	sub->kind = NPS_TASK_MEMCPY;
	sub->name = nps_strings__addz(&w->model->strings, "MEMCPY_ASYNC");
	sub->memcpy_op = memcpy_operation(call->ev);
	sub->memcpy_call = call->copy;
	nps_event_arg(call->ev, NPS_M_SIZE, &sub->size);
	if (nps_event_arg(call->ev, NPS_M_ROWS, &rows) && __builtin_mul_overflow(sub->size, rows, &sub->size))
		sub->size = 0;
	if (!copy_blocks(call->ev->probe) || sub->memcpy_op != 2 || call->ev->ret)
		return 0;
	sync = nps_vec__push(&w->model->syncs);
	if (!sync)
		return -errno;
	*sync = (struct nps_sync){ .cover = sub->open_ended ? sub->begin : sub->end,
				   .by_begin = sub->open_ended,
				   .done = call->end,
				   .proc = w->proc_row,
				   .device = sub->device,
				   .stream = sub->stream };
	return 0;
}

static int note_handles(struct nps_walk *w, const struct nps_sub *sub, struct nps_frame *call)
{
	uint32_t row = sub - (const struct nps_sub *)w->model->subs.data;
	uint64_t handle;
	int err = 0;

	/* A collective queues on streams of its own as well. */
	if (call->info->call != NPS_CALL_COLLECTIVE && nps_event_arg(call->ev, NPS_M_STREAM, &handle))
		err = nps_history__add(&w->streams, nps_walk__stream_key(w->proc_row, w->tid, handle),
				       call->ev->start, (uint32_t)sub->device << 16 | sub->stream);
	if (call->first_sub == NPS_NONE)
		call->first_sub = row;
	/* The event stands for this record from when the call returned: until then maybe for an older one. */
	if (!err && call->info->call == NPS_CALL_RECORD_EVENT &&
	    nps_event_arg(call->ev, NPS_M_EVENT, &handle))
		err = nps_history__add(&w->event_marks, nps_names__key(w->proc_row, handle), call->end,
				       nps_walk__mark_value(call->first_sub, row));
	if (!err && call->info->call == NPS_CALL_WAIT_EVENT && sub->sqe_type == NPS_SQE_EVENT_WAIT)
		err = nps_walk__timing(w, call->ev, row);
	return err;
}

/*
 * A 950 numbers its tasks with 32 bits instead of stream and task, so the queue stands for the stream; and
 * its events are notifies.
 */
static void number_as_chip(struct nps_sub *sub, uint32_t chip, const struct nps_event *ev,
			   const struct nps_frame *call)
{
	enum nps_call what = call ? (enum nps_call)call->info->call : NPS_CALL_OTHER;

	sub->sqe_type = nps_sqe_type(chip, sub->sqe_type);
	if (chip != NPS_CHIP_950 && chip != NPS_CHIP_950_1)
		return;
	sub->task = ev->sqe.sqe.stream | (uint32_t)ev->sqe.sqe.task << 16;
	sub->stream = ev->sqe.queue;
	if (what == NPS_CALL_RECORD_EVENT && sub->sqe_type == NPS_SQE_NOTIFY_RECORD)
		sub->sqe_type = NPS_SQE_EVENT_RECORD;
	else if (what == NPS_CALL_WAIT_EVENT && sub->sqe_type == NPS_SQE_NOTIFY_WAIT)
		sub->sqe_type = NPS_SQE_EVENT_WAIT;
}

/* --- submissions of which only the beginning was recorded: those have no length --- */

void nps_walk__submitted(struct nps_walk *w, const struct nps_event *next)
{
	if (!w->sent.n)
		return;
	for (uint32_t i = w->sent.first; i < w->model->subs.len && next->start > w->sent.tried; i++) {
		struct nps_sub *sub = &NPS_AT(&w->model->subs, struct nps_sub, i);

		sub->end = NPS_MIN(sub->end, next->start);
	}
	if (next->kind != NPS_EV_SQE)
		w->sent.n = 0;
}

static bool is_same_sqe(const struct nps_event *a, const struct nps_event *b)
{
	return a->sqe.device == b->sqe.device && a->sqe.queue == b->sqe.queue &&
	       !memcmp(&a->sqe.sqe, &b->sqe.sqe, sizeof(a->sqe.sqe));
}

/*
 * The row of what the thread submitted with its last call, if EV submits the same again and the thread did
 * nothing since: the queue was full then. NULL: EV submits something new.
 */
static struct nps_sub *find_refused(struct nps_walk *w, const struct nps_event *ev)
{
	for (uint32_t i = 0; i < w->sent.n; i++)
		if (w->sent.ev[i]->start < ev->start && is_same_sqe(w->sent.ev[i], ev))
			return &NPS_AT(&w->model->subs, struct nps_sub, w->sent.first + i);
	return NULL;
}

/* Does the call put something into a stream? */
static bool submits(const struct nps_probe_info *info)
{
	switch (info->call) {
	case NPS_CALL_LAUNCH:
	case NPS_CALL_MEMCPY:
	case NPS_CALL_RECORD_EVENT:
	case NPS_CALL_WAIT_EVENT:
	case NPS_CALL_COLLECTIVE:
		return true;
	case NPS_CALL_OTHER:
		for (int i = 0; i < 4; i++)
			if (info->slot[i].meaning == NPS_M_STREAM)
				return true;
	}
	return false;
}

/* Can it fail though what it submitted has reached the device: as it submits several, or waits for them? */
static bool can_fail_later(const struct nps_frame *call)
{
	return call->info->call == NPS_CALL_COLLECTIVE || call->info->flags & NPS_P_OPEN ||
	       copy_blocks(call->ev->probe);
}

/* Whether it was refused, by the driver's return or by that of the call around it. */
static bool is_failed(struct nps_walk *w, const struct nps_event *ev)
{
	int i = w->depth - 1;

	if (ev->dur || ev->ret)
		return ev->ret;
	while (i >= 0 && !submits(w->stack[i].info))
		i--;
	if (i < 0 || !w->stack[i].ev->ret || w->stack[i].ev->flags & NPS_F_UNFINISHED)
		return false;
	if (!can_fail_later(&w->stack[i]))
		return true;
	w->model->losses.uncertain++;
	return false;
}

/* The latest end of a submission: that of the call around it, unless the thread does something before. */
static uint64_t latest_end(const struct nps_walk *w, const struct nps_event *ev)
{
	if (ev->dur)
		return ev->start + ev->dur;
	return w->depth ? w->stack[w->depth - 1].end : ev->start;
}

/* EV submitted the last row of subs. */
static void note_sent(struct nps_walk *w, const struct nps_event *ev)
{
	if (ev->dur || !w->sent.n || w->sent.ev[0]->start != ev->start) {
		w->sent.n = 0;
		w->sent.first = w->model->subs.len - 1;
		w->sent.tried = ev->start;
	}
	if (!ev->dur && w->sent.n < NPS_WALK_SENT)
		w->sent.ev[w->sent.n++] = ev;
}

int nps_walk__submission(struct nps_walk *w, const struct nps_event *ev)
{
	const struct nps_sqe_head *sqe = &ev->sqe.sqe;
	unsigned int device = ev->sqe.device, type = sqe->type & NPS_SQE_TYPE_BITS;
	const struct nps_device *known = device < NPS_MAX_DEVICES ? &w->model->devices[device] : NULL;
	struct nps_frame *coll = nps_walk__frame(w, NPS_CALL_COLLECTIVE),
			 *call = nps_walk__frame(w, NPS_CALL_MEMCPY), *inner = NULL;
	struct nps_sub *sub;
	int err;

	if (type == NPS_SQE_INVALID)
		return 0;
	sub = find_refused(w, ev);
	if (sub) {
		w->sent.tried = ev->start;
		sub->end = latest_end(w, ev); /* the record before has no end */
		return 0;
	}
	if (is_failed(w, ev))
		return 0;
	if (device >= NPS_MAX_DEVICES || ev->flags & (NPS_F_SLOT_FAULT(0) | NPS_F_SLOT_FAULT(1))) {
		w->model->losses.sqe++;
		return 0;
	}
	for (int i = w->depth - 1; i >= 0 && !inner; i--)
		if (w->stack[i].cann != NPS_NONE)
			inner = &w->stack[i];
	sub = nps_vec__push(&w->model->subs);
	if (!sub)
		return -errno;
	*sub = (struct nps_sub){ .begin = ev->start,
				 .end = latest_end(w, ev),
				 .proc = w->proc_row,
				 .tid = w->tid,
				 .cann = inner ? inner->cann : NPS_NONE,
				 .comm = NPS_NONE,
				 .type = NPS_NONE,
				 .function = NPS_NONE,
				 .task_row = NPS_NONE,
				 .run = NPS_NONE,
				 .memcpy_call = NPS_NONE,
				 .device = device,
				 .stream = sqe->stream,
				 .task = sqe->task,
				 .blocks = sqe->blocks,
				 .sqe_type = type,
				 .memcpy_op = 255,
				 .open_ended = !ev->dur };
	note_sent(w, ev);
	if (known->has_platform)
		number_as_chip(sub, known->platform, ev, inner);
	type = sub->sqe_type;
	w->device = device;
	if (w->user != UINT16_MAX &&
	    nps_map__put(&w->user_devices, (uint64_t)w->proc_row << 16 | w->user, device))
		return -ENOMEM;
	w->proc->devices |= 1ULL << device;
	err = inner ? note_handles(w, sub, inner) : 0;
	if (err)
		return err;
	if (coll) {
		sub->name = nps_task_type_name(w->model, type);
		return sub_collective(w, coll, sub);
	}
	if (nps_is_kernel(type))
		return sub_kernel(w, sub, nps_walk__frame(w, NPS_CALL_LAUNCH));
	if (call && (type == NPS_SQE_PCIE_DMA || type == NPS_SQE_SDMA))
		return sub_copy(w, sub, call);
	sub->kind = type == NPS_SQE_EVENT_RECORD || type == NPS_SQE_EVENT_WAIT ? NPS_TASK_EVENT
									       : NPS_TASK_OTHER;
	sub->name = nps_task_type_name(w->model, type);
	return 0;
}
