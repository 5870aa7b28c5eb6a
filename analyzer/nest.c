/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of a thread nest: a submission belongs to the launch that contains it, the launch to the
 * operator whose run came before it. This walk turns events into CANN rows, submissions
 * and collectives.
 */
#include "join.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COOL (1U << 19) /* events after which those that were read leave the resident set */
#define DEPTH 64 /* deeper calls keep their row but are nobody's parent */

struct frame {
	const struct nps_event *ev;
	const struct nps_probe_info *info;
	uint64_t end;
	uint32_t cann, comm, copy;
	uint32_t name, type; /* of the kernel, for launches */
};

/* A launch whose operator is not known until all launches have been seen. */
struct pending {
	uint64_t handle;
	uint32_t sub, proc, cann, api;
};

struct pending_sync {
	const struct nps_event *ev;
	uint32_t proc;
	uint16_t device;
	uint8_t call;
};

struct walk {
	struct nps_model *model;
	struct nps_names *names;
	struct nps_history streams; /* handle -> device << 16 | stream */
	struct nps_history event_marks; /* event handle -> row of subs that records it */
	struct nps_vec pending, syncs;
	uint32_t node_name, copies;
	uint32_t symbols[NPS_PROBE_MAX]; /* texts */
	/* the thread */
	struct nps_proc *proc;
	uint32_t proc_row, tid;
	struct frame stack[DEPTH];
	int depth;
	const struct nps_op_run *run;
	uint32_t l0; /* next L0 operator of the run */
	uint32_t l0_used;
	uint32_t op_row; /* open aclnn row, NPS_NONE */
	bool op_phase2;
	uint64_t op_limit;
	uint16_t device;
	/* the launch being looked at */
	uint64_t handle;
	bool learn_later;
};

static struct nps_cann *add_row(struct walk *w, uint64_t start, uint64_t end, uint8_t level, uint32_t name)
{
	struct nps_cann *row = nps_vec__push(&w->proc->cann);

	if (row)
		*row = (struct nps_cann){ .start = start, .end = end, .tid = w->tid, .name = name, .item = NPS_NONE, .level = level };
	return row;
}

static uint32_t last_row(const struct walk *w)
{
	return w->proc->cann.len - 1;
}

/* --- aclnn operators: only their beginnings are seen --- */

static void extend_op(struct walk *w, uint64_t until)
{
	struct nps_cann *row;

	if (w->op_row == NPS_NONE)
		return;
	row = &NPS_AT(&w->proc->cann, struct nps_cann, w->op_row);
	row->end = NPS_MAX(row->end, NPS_MIN(until, w->op_limit));
}

static int open_op(struct walk *w, const struct nps_event *ev, bool phase2)
{
	uint64_t id;
	uint32_t name = nps_event_arg(ev, NPS_M_NAME, &id) ? nps_model__text(w->model, id) : NPS_NONE;
	struct nps_cann *row;

	if (name == NPS_NONE)
		name = nps_strings__addz(&w->model->strings, "aclnn(name lost)");
	else if (!phase2)
		name = nps_strings__addf(&w->model->strings, "%sGetWorkspaceSize", nps_strings__get(&w->model->strings, name));
	row = add_row(w, ev->start, ev->start, NPS_LAYER_ACL, name);
	if (!row)
		return -ENOMEM;
	row->lower_bound = true;
	w->op_row = last_row(w);
	w->op_phase2 = phase2;
	w->op_limit = w->depth ? w->stack[w->depth - 1].end : UINT64_MAX;
	w->run = NULL;
	return 0;
}

static int on_mark(struct walk *w, const struct nps_event *ev)
{
	switch (ev->probe) {
	case NPS_PROBE_NN_PHASE1:
		return open_op(w, ev, false);
	case NPS_PROBE_NN_PHASE2:
		return open_op(w, ev, true);
	case NPS_PROBE_NN_L0:
		w->run = NULL;
		if (!w->op_phase2)
			extend_op(w, ev->start);
		return 0;
	case NPS_PROBE_NN_RUN:
		w->run = ev->args[3] && ev->args[3] <= w->names->runs.len ?
				 &NPS_AT(&w->names->runs, struct nps_op_run, ev->args[3] - 1) : NULL;
		w->l0 = w->run ? w->run->first : NPS_NONE;
		w->l0_used = 0;
		if (w->op_phase2)
			extend_op(w, ev->start);
		return 0;
	}
	return 0;
}

/* --- names of kernels --- */

static uint32_t op_name(struct walk *w, uint32_t api, uint32_t l0)
{
	char text[512];

	snprintf(text, sizeof(text), "%s_%s", nps_strings__get(&w->model->strings, api), nps_strings__get(&w->model->strings, l0));
	return nps_strings__addz(&w->model->strings, text);
}

/* Names the kernel of launch EV: the run's next L0 operator, else as it was registered. */
static int name_launch(struct walk *w, const struct nps_event *ev, struct frame *frame)
{
	uint64_t key;
	uint32_t l0 = w->run ? w->l0 : NPS_NONE;

	w->learn_later = false;
	if (!nps_names__handle(ev, &w->handle, &frame->name, w->model)) {
		frame->type = frame->name;
	} else {
		frame->name = nps_names__kernel(w->names, w->proc_row, w->handle, ev->start);
		frame->type = frame->name;
	}
	if (!w->run || w->run->api == NPS_NONE)
		return 0;
	key = nps_names__key(w->proc_row, w->handle);
	if (l0 != NPS_NONE) {
		const struct nps_l0 *node = &NPS_AT(&w->names->l0s, struct nps_l0, l0);

		w->l0 = node->next;
		if (node->text == NPS_NONE)
			return 0;
		frame->type = node->text;
		frame->name = op_name(w, w->run->api, node->text);
		extend_op(w, frame->end);
		return w->handle ? nps_map__put(&w->names->learned, key, node->text) : 0;
	}
	w->learn_later = !w->run->count && w->handle;
	return 0;
}

/* Operators whose first phase was before the capture: what their handles were launched for later. */
static void name_pending(struct walk *w)
{
	for (size_t i = 0; i < w->pending.len; i++) {
		const struct pending *p = &NPS_AT(&w->pending, struct pending, i);
		uint32_t l0 = nps_map__get(&w->names->learned, nps_names__key(p->proc, p->handle));
		struct nps_sub *sub = &NPS_AT(&w->model->subs, struct nps_sub, p->sub);

		if (l0 == NPS_NONE)
			continue;
		sub->type = l0;
		sub->name = op_name(w, p->api, l0);
		NPS_AT(&w->model->procs[p->proc].cann, struct nps_cann, p->cann).item = sub->name;
	}
}

/* --- calls --- */

static struct frame *frame_of(struct walk *w, enum nps_call_class call)
{
	for (int i = w->depth - 1; i >= 0; i--)
		if (w->stack[i].info->call == call)
			return &w->stack[i];
	return NULL;
}

static void pop_until(struct walk *w, uint64_t start, uint64_t end)
{
	while (w->depth && (w->stack[w->depth - 1].end < start || w->stack[w->depth - 1].end < end))
		w->depth--;
	if (start > w->op_limit) {
		w->op_row = NPS_NONE;
		w->op_limit = UINT64_MAX;
		w->run = NULL;
	}
}

static int keep_sync(struct walk *w, const struct nps_event *ev, const struct nps_probe_info *info)
{
	struct pending_sync *sync;
	uint64_t status = 0;

	if (ev->ret)
		return 0;
	if (info->call == NPS_CALL_QUERY_EVENT && (!nps_event_arg(ev, NPS_M_STATUS, &status) || status != 1))
		return 0;
	sync = nps_vec__push(&w->syncs);
	if (!sync)
		return -errno;
	*sync = (struct pending_sync){ ev, w->proc_row, w->device, info->call };
	return 0;
}

static int on_call(struct walk *w, const struct nps_event *ev)
{
	const struct nps_probe_info *info = nps_probe_info(ev->probe);
	struct frame frame = { .ev = ev, .info = info, .end = ev->start + ev->dur, .cann = NPS_NONE, .comm = NPS_NONE,
		.copy = NPS_NONE, .name = NPS_NONE, .type = NPS_NONE };
	uint64_t device;
	int err = 0;

	if (!info)
		return 0;
	if (info->layer != NPS_LAYER_NONE) {
		if (!add_row(w, ev->start, frame.end, info->layer, w->symbols[ev->probe]))
			return -ENOMEM;
		frame.cann = last_row(w);
	}
	switch (info->call) {
	case NPS_CALL_LAUNCH: {
		const struct frame *outer = frame_of(w, NPS_CALL_LAUNCH);

		if (outer) {
			frame.name = outer->name;
			frame.type = outer->type;
		} else if (!ev->ret && !frame_of(w, NPS_CALL_COLLECTIVE)) {
			err = name_launch(w, ev, &frame);
		}
		break;
	}
	case NPS_CALL_MEMCPY:
		frame.copy = w->copies++;
		break;
	case NPS_CALL_SYNC_DEVICE:
	case NPS_CALL_SYNC_STREAM:
	case NPS_CALL_SYNC_EVENT:
	case NPS_CALL_QUERY_EVENT:
		err = keep_sync(w, ev, info);
		break;
	case NPS_CALL_SET_DEVICE:
		if (!ev->ret && nps_event_arg(ev, NPS_M_DEVICE, &device) && (uint32_t)device < NPS_MAX_DEVICES)
			w->device = device;
		break;
	}
	if (w->depth < DEPTH)
		w->stack[w->depth++] = frame;
	return err;
}

/* --- submissions --- */

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

/* The collective that frame F stands for, made at its first submission. */
static int collective(struct walk *w, struct frame *f, struct nps_sub *sub)
{
	struct nps_comm_op *op;
	struct nps_cann *row;
	uint64_t comm = 0, value, key;
	char text[64];

	if (f->comm == NPS_NONE) {
		op = nps_vec__push(&w->proc->comms);
		if (!op)
			return -errno;
		f->comm = w->proc->comms.len - 1;
		nps_event_arg(f->ev, NPS_M_COMM, &comm);
		key = nps_names__key(w->proc_row, comm);
		*op = (struct nps_comm_op){ .call_start = f->ev->start, .tid = w->tid, .ranks = NPS_NONE, .dtype = 65534,
			.device = sub->device, .name = NPS_NONE, .step = NPS_NONE };
		if (nps_history__at(&w->names->groups, key, f->ev->start, &value) || nps_history__first(&w->names->groups, key, &value)) {
			op->group = value;
		} else {
			snprintf(text, sizeof(text), "comm@0x%llx", (unsigned long long)comm);
			op->group = nps_strings__addz(&w->model->strings, text);
		}
		if (nps_history__at(&w->names->ranks, key, f->ev->start, &value) || nps_history__first(&w->names->ranks, key, &value))
			op->ranks = value;
		nps_event_arg(f->ev, NPS_M_COUNT, &op->count);
		if (nps_event_arg(f->ev, NPS_M_DTYPE, &value))
			op->dtype = NPS_MIN((uint32_t)value, 65534U);
		op->type = nps_strings__addf(&w->model->strings, "hcom_%s_", f->info->collective);
		row = add_row(w, sub->begin, sub->end, NPS_LAYER_NODE, w->node_name);
		op->node = last_row(w);
		if (!row || !add_row(w, sub->begin, sub->end, NPS_LAYER_COMM, w->node_name))
			return -ENOMEM;
		op->launch = last_row(w);
	}
	op = &NPS_AT(&w->proc->comms, struct nps_comm_op, f->comm);
	row = w->proc->cann.data;
	row[op->node].end = row[op->launch].end = NPS_MAX(row[op->node].end, sub->end);
	sub->comm = f->comm;
	sub->cann = op->node;
	return 0;
}

static bool is_kernel(unsigned int type)
{
	return type == NPS_SQE_AI_CORE || type == NPS_SQE_AI_CPU || type == NPS_SQE_AIV || type == NPS_SQE_DSA;
}

static const char *const other_names[64] = {
	[NPS_SQE_AI_CORE] = "AI_CORE", [NPS_SQE_AI_CPU] = "AI_CPU", [NPS_SQE_AIV] = "AI_VECTOR_CORE", [NPS_SQE_DSA] = "DSA",
	[NPS_SQE_PLACE_HOLDER] = "PLACE_HOLDER", [NPS_SQE_EVENT_RECORD] = "EVENT_RECORD", [NPS_SQE_EVENT_WAIT] = "EVENT_WAIT",
	[NPS_SQE_NOTIFY_RECORD] = "Notify Record", [NPS_SQE_NOTIFY_WAIT] = "Notify Wait", [NPS_SQE_WRITE_VALUE] = "Write Value",
	[NPS_SQE_SDMA] = "SDMA", [NPS_SQE_PCIE_DMA] = "PCIE_DMA",
};

uint32_t nps_task_type_name(struct nps_model *model, unsigned int sqe_type)
{
	if (sqe_type < 64 && other_names[sqe_type])
		return nps_strings__addz(&model->strings, other_names[sqe_type]);
	return nps_strings__addf(&model->strings, "SQE_TYPE_%u", sqe_type);
}

static int kernel(struct walk *w, struct nps_sub *sub, const struct frame *launch)
{
	uint64_t start = launch ? launch->ev->start : sub->begin, end = launch ? launch->end : sub->end;
	struct nps_cann *row = add_row(w, start, end, NPS_LAYER_NODE, w->node_name);
	struct pending *p;

	if (!row)
		return -ENOMEM;
	sub->kind = NPS_TASK_COMPUTE;
	sub->name = launch && launch->name != NPS_NONE ? launch->name : nps_task_type_name(w->model, sub->sqe_type);
	sub->type = launch && launch->type != NPS_NONE ? launch->type : sub->name;
	sub->cann = last_row(w);
	row->item = sub->name;
	w->proc->launches++;
	if (!launch || !w->learn_later)
		return 0;
	p = nps_vec__push(&w->pending);
	if (!p)
		return -errno;
	*p = (struct pending){ w->handle, sub - (struct nps_sub *)w->model->subs.data, w->proc_row, sub->cann, w->run->api };
	extend_op(w, launch->end);
	return 0;
}

/* A copy is named as the vendor names it, and a blocking copy to the host is a synchronisation. */
static int copy(struct walk *w, struct nps_sub *sub, const struct frame *call)
{
	struct nps_sync *sync;

	sub->kind = NPS_TASK_MEMCPY;
	sub->name = nps_strings__addz(&w->model->strings, "MEMCPY_ASYNC");
	sub->memcpy_op = memcpy_operation(call->ev);
	sub->memcpy_call = call->copy;
	nps_event_arg(call->ev, NPS_M_SIZE, &sub->size);
	if (call->ev->probe != NPS_PROBE_MEMCPY || sub->memcpy_op != 2 || call->ev->ret)
		return 0;
	sync = nps_vec__push(&w->model->syncs);
	if (!sync)
		return -errno;
	*sync = (struct nps_sync){ .cover = sub->end, .done = call->end, .proc = w->proc_row, .device = sub->device, .stream = sub->stream };
	return 0;
}

static int note_handles(struct walk *w, const struct nps_sub *sub, const struct frame *call)
{
	uint64_t handle;
	int err = 0;

	if (nps_event_arg(call->ev, NPS_M_STREAM, &handle))
		err = nps_history__add(&w->streams, nps_names__key(w->proc_row, handle), call->ev->start, (uint32_t)sub->device << 16 | sub->stream);
	if (!err && call->info->call == NPS_CALL_RECORD_EVENT && nps_event_arg(call->ev, NPS_M_EVENT, &handle))
		err = nps_history__add(&w->event_marks, nps_names__key(w->proc_row, handle), sub->begin,
				       sub - (const struct nps_sub *)w->model->subs.data);
	return err;
}

static int on_submission(struct walk *w, const struct nps_event *ev)
{
	unsigned int device = ev->args[0] & 0xffff, type = ev->args[1] & 0x3f;
	struct frame *coll = frame_of(w, NPS_CALL_COLLECTIVE), *call = frame_of(w, NPS_CALL_MEMCPY), *inner = NULL;
	struct nps_sub *sub;
	int err;

	if (ev->ret || type == NPS_SQE_INVALID)
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
	*sub = (struct nps_sub){ .begin = ev->start, .end = ev->start + ev->dur, .proc = w->proc_row, .tid = w->tid,
		.cann = inner ? inner->cann : NPS_NONE, .comm = NPS_NONE, .type = NPS_NONE, .task_row = NPS_NONE,
		.memcpy_call = NPS_NONE, .device = device, .stream = ev->args[1] >> 32, .task = ev->args[1] >> 48,
		.blocks = ev->args[1] >> 16, .sqe_type = type, .memcpy_op = 255 };
	w->device = device;
	w->proc->devices |= 1ULL << device;
	err = inner ? note_handles(w, sub, inner) : 0;
	if (err)
		return err;
	if (coll) {
		sub->name = nps_task_type_name(w->model, type);
		return collective(w, coll, sub);
	}
	if (is_kernel(type))
		return kernel(w, sub, frame_of(w, NPS_CALL_LAUNCH));
	if (call && (type == NPS_SQE_PCIE_DMA || type == NPS_SQE_SDMA))
		return copy(w, sub, call);
	sub->kind = type == NPS_SQE_EVENT_RECORD || type == NPS_SQE_EVENT_WAIT ? NPS_TASK_EVENT : NPS_TASK_OTHER;
	sub->name = nps_task_type_name(w->model, type);
	return 0;
}

static int on_event(struct walk *w, const struct nps_event *ev)
{
	pop_until(w, ev->start, ev->start + ev->dur);
	if (ev->kind == NPS_EV_MARK)
		return on_mark(w, ev);
	if (ev->kind == NPS_EV_SQE)
		return on_submission(w, ev);
	return on_call(w, ev);
}

/* --- synchronisations --- */

static int resolve_sync(struct walk *w, const struct pending_sync *p)
{
	struct nps_sync sync = { .cover = p->ev->start, .done = p->ev->start + p->ev->dur, .proc = p->proc,
		.device = p->device, .stream = UINT16_MAX }, *row;
	uint64_t handle, value, devices = w->model->procs[p->proc].devices;

	if (p->call == NPS_CALL_SYNC_DEVICE) {
		if (sync.device == UINT16_MAX && devices && !(devices & (devices - 1)))
			sync.device = __builtin_ctzll(devices);
		if (sync.device == UINT16_MAX)
			return 0;
	} else if (p->call == NPS_CALL_SYNC_STREAM) {
		if (!nps_event_arg(p->ev, NPS_M_STREAM, &handle))
			return 0;
		handle = nps_names__key(p->proc, handle);
		if (!nps_history__at(&w->streams, handle, sync.cover, &value) && !nps_history__first(&w->streams, handle, &value))
			return 0;
		sync.device = value >> 16;
		sync.stream = value;
	} else {
		const struct nps_sub *sub;

		if (!nps_event_arg(p->ev, NPS_M_EVENT, &handle) ||
		    !nps_history__at(&w->event_marks, nps_names__key(p->proc, handle), sync.cover, &value))
			return 0;
		sub = &NPS_AT(&w->model->subs, struct nps_sub, value);
		sync.cover = sub->end;
		sync.device = sub->device;
		sync.stream = sub->stream;
	}
	row = nps_vec__push(&w->model->syncs);
	if (!row)
		return -errno;
	*row = sync;
	return 0;
}

/* The size of a copy that was split over several SQEs is not the size of any of them. */
static int forget_shared_sizes(struct walk *w)
{
	struct nps_sub *subs = w->model->subs.data;
	uint8_t *shares = calloc(w->copies + 1, 1);

	if (!shares)
		return -ENOMEM;
	for (size_t i = 0; i < w->model->subs.len; i++)
		if (subs[i].memcpy_call != NPS_NONE && shares[subs[i].memcpy_call] < 2)
			shares[subs[i].memcpy_call]++;
	for (size_t i = 0; i < w->model->subs.len; i++)
		if (subs[i].memcpy_call != NPS_NONE && shares[subs[i].memcpy_call] > 1)
			subs[i].size = 0;
	free(shares);
	return 0;
}

static int finish(struct walk *w)
{
	int err = nps_history__finish(&w->streams);

	if (!err)
		err = nps_history__finish(&w->event_marks);
	for (size_t i = 0; !err && i < w->syncs.len; i++)
		err = resolve_sync(w, &NPS_AT(&w->syncs, struct pending_sync, i));
	if (!err)
		err = forget_shared_sizes(w);
	name_pending(w);
	return err;
}

/* --- order --- */

/*
 * Rows of the events by thread, then start, outer calls before inner ones. A mark comes before
 * a call of the same instant, a submission after it.
 */
static int sort_events(const struct nps_model *model, struct nps_vec *keys)
{
	size_t n = model->events.len;
	struct nps_map threads = { 0 };
	struct nps_key *key, *tmp;
	uint32_t nthreads = 0;
	int err = nps_vec__resize(keys, 2 * n);

	if (err)
		return err;
	key = keys->data;
	tmp = key + n;
	for (size_t i = 0; !err && i < n; i++) {
		const struct nps_event *ev = &NPS_AT(&model->events, struct nps_event, i);
		uint64_t thread = (uint64_t)ev->pid << 32 | ev->tid;
		uint32_t row = nps_map__get(&threads, thread);

		if (row == NPS_NONE) {
			row = nthreads++;
			err = nps_map__put(&threads, thread, row);
		}
		/* ascending key = descending end; the lowest bits order what begins and ends together */
		key[i] = (struct nps_key){ .key = ev->kind == NPS_EV_MARK ? 0 : (~(ev->start + ev->dur)) << 1 | (ev->kind == NPS_EV_SQE), .row = i, .group = row };
	}
	nps_sort_keys(key, tmp, n);
	for (size_t i = 0; i < n; i++)
		key[i].key = NPS_AT(&model->events, struct nps_event, key[i].row).start;
	nps_sort_keys(key, tmp, n);
	nps_sort_groups(key, tmp, n);
	nps_map__free(&threads);
	keys->len = n;
	return err;
}

static void new_thread(struct walk *w, const struct nps_event *ev)
{
	w->proc_row = nps_map__get(&w->model->proc_of, ev->pid);
	w->proc = &w->model->procs[w->proc_row];
	w->tid = ev->tid;
	w->depth = 0;
	w->run = NULL;
	w->op_row = NPS_NONE;
	w->op_limit = UINT64_MAX;
	w->device = UINT16_MAX;
}

int nps_nest__run(struct nps_model *model, struct nps_names *names)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct nps_vec keys;
	uint32_t group = NPS_NONE;
	int err;

	if (!w)
		return -ENOMEM;
	*w = (struct walk){ .model = model, .names = names };
	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	nps_vec__init(&w->pending, model->tmpfd, sizeof(struct pending));
	nps_vec__init(&w->syncs, model->tmpfd, sizeof(struct pending_sync));
	nps_history__init(&w->streams, model->tmpfd);
	nps_history__init(&w->event_marks, model->tmpfd);
	w->node_name = nps_strings__addz(&model->strings, "launch");
	for (unsigned int i = 0; i < NPS_PROBE_MAX; i++)
		w->symbols[i] = nps_probe_info(i) ? nps_strings__addz(&model->strings, nps_probe_info(i)->symbol) : NPS_NONE;
	err = sort_events(model, &keys);
	for (size_t i = 0; !err && i < keys.len; i++) {
		const struct nps_key *key = &NPS_AT(&keys, struct nps_key, i);
		const struct nps_event *ev = &NPS_AT(&model->events, struct nps_event, key->row);

		if (!(i & (COOL - 1))) {
			nps_vec__cool(&model->events);
			nps_vec__cool(&keys);
		}
		if (key->group != group)
			new_thread(w, ev);
		group = key->group;
		err = on_event(w, ev);
	}
	if (!err)
		err = finish(w);
	nps_vec__free(&keys);
	nps_vec__free(&w->pending);
	nps_vec__free(&w->syncs);
	nps_history__free(&w->streams);
	nps_history__free(&w->event_marks);
	free(w);
	return err;
}

int nps_nest__number(struct nps_model *model)
{
	struct nps_vec keys;
	int err = 0;

	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	for (uint32_t p = 0; !err && p < model->nprocs; p++) {
		struct nps_proc *proc = &model->procs[p];
		size_t n = proc->cann.len;
		struct nps_cann *rows = proc->cann.data;
		struct nps_key *key;

		if (!n)
			continue;
		keys.len = 0;
		err = n >= NPS_NONE / 2 ? -EOVERFLOW : nps_vec__resize(&keys, 2 * n);
		if (!err)
			err = nps_vec__resize(&proc->cann_order, n);
		if (err)
			break;
		key = keys.data;
		for (size_t i = 0; i < n; i++)
			key[i] = (struct nps_key){ .key = rows[i].start, .row = i };
		nps_sort_keys(key, key + n, n);
		for (size_t i = 0; i < n; i++) {
			NPS_AT(&proc->cann_order, uint32_t, i) = key[i].row;
			rows[key[i].row].conn = i + 1;
		}
	}
	nps_vec__free(&keys);
	return err;
}
