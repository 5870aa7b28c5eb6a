/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of a thread nest: a submission belongs to the launch that contains it, the launch to the
 * operator whose run came before it. This walk turns events into CANN rows, submissions
 * and collectives.
 */
#include "import/session/nest_walk.h"
#include "import/session/op_ends.h"

#include "base/progress.h"
#include "import/session/session_reader.h"
#include "schema/tables.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COOL (1U << 19) /* events after which those that were read leave the resident set */
#define COMM_INDEX_SLOT 2 /* of HcclCommInitAll, which has a record for each communicator: its index */

/* --- calls --- */

struct nps_cann *nps_walk__row(struct nps_walk *w, uint64_t start, uint64_t end, uint8_t level, uint32_t name)
{
	struct nps_cann *row = nps_vec__push(&w->proc->cann);

	if (row)
		*row = (struct nps_cann){ .start = start,
					  .end = end,
					  .tid = w->tid,
					  .name = name,
					  .item = NPS_NONE,
					  .level = level };
	return row;
}

uint32_t nps_walk__last_row(const struct nps_walk *w)
{
	return w->proc->cann.len - 1;
}

uint64_t nps_walk__stream_key(uint32_t proc, uint32_t tid, uint64_t handle)
{
	return nps_names__key(proc, handle ? handle : nps_hash2(tid, 1));
}

struct nps_frame *nps_walk__frame(struct nps_walk *w, enum nps_call call)
{
	for (int i = w->depth - 1; i >= 0; i--)
		if (w->stack[i].info->call == call)
			return &w->stack[i];
	return NULL;
}

static void pop_until(struct nps_walk *w, uint64_t start, uint64_t end)
{
	while (w->depth && (w->stack[w->depth - 1].end < start || w->stack[w->depth - 1].end < end))
		w->depth--;
	while (start > w->op_limit)
		nps_walk__close_op(w);
}

static int keep_sync(struct nps_walk *w, const struct nps_event *ev, const struct nps_probe_info *info)
{
	struct nps_pending_sync *sync;
	uint64_t status = 0;

	if (ev->ret)
		return 0;
	if (info->call == NPS_CALL_QUERY_EVENT && (!nps_event_arg(ev, NPS_M_STATUS, &status) || status != 1))
		return 0;
	sync = nps_vec__push(&w->syncs);
	if (!sync)
		return -errno;
	*sync = (struct nps_pending_sync){ ev, w->proc_row, w->device, w->user, info->call };
	return 0;
}

/* The thread has another device or context: its default stream is another one too. */
static int enter_context(struct nps_walk *w, const struct nps_event *ev)
{
	uint64_t device;

	if (ev->ret)
		return 0;
	w->device = w->user = UINT16_MAX;
	if (ev->probe != NPS_PROBE_CREATE_CONTEXT && nps_event_arg(ev, NPS_M_DEVICE, &device) &&
	    (uint32_t)device < NPS_MAX_DEVICES)
		w->user = device;
	return nps_history__add(&w->streams, nps_walk__stream_key(w->proc_row, w->tid, 0),
				ev->start + ev->dur, NPS_NONE);
}

static int forget_event(struct nps_walk *w, const struct nps_event *ev)
{
	uint64_t handle;

	if (!nps_event_arg(ev, NPS_M_EVENT, &handle))
		return 0;
	return nps_history__add(&w->event_marks, nps_names__key(w->proc_row, handle), ev->start, NPS_NONE);
}

static int on_call(struct nps_walk *w, const struct nps_event *ev)
{
	const struct nps_probe_info *info = nps_probe_info(ev->probe);
	struct nps_frame frame = { .ev = ev,
				   .info = info,
				   .end = ev->start + ev->dur,
				   .cann = NPS_NONE,
				   .comm = NPS_NONE,
				   .copy = NPS_NONE,
				   .name = NPS_NONE,
				   .type = NPS_NONE,
				   .function = NPS_NONE,
				   .run = NPS_NONE,
				   .alloc = NPS_NONE,
				   .first_sub = NPS_NONE };
	int err = 0;

	if (!info)
		return 0;
	if (info->layer != NPS_LAYER_NONE) {
		struct nps_cann *row =
			nps_walk__row(w, ev->start, frame.end, info->layer, w->symbols[ev->probe]);

		if (!row)
			return -ENOMEM;
		if (ev->flags & NPS_F_UNFINISHED)
			row->ending = NPS_ENDING_UNFINISHED;
		frame.cann = nps_walk__last_row(w);
	}
	switch (info->call) {
	case NPS_CALL_LAUNCH: {
		const struct nps_frame *outer = nps_walk__frame(w, NPS_CALL_LAUNCH);

		if (outer) {
			frame.name = outer->name;
			frame.type = outer->type;
			frame.run = outer->run;
		} else if ((!ev->ret || ev->flags & NPS_F_UNFINISHED) &&
			   !nps_walk__frame(w, NPS_CALL_COLLECTIVE)) {
			err = nps_walk__name_launch(w, ev, &frame);
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
	case NPS_CALL_TIME_EVENT:
		err = nps_walk__timing(w, ev, NPS_NONE);
		break;
	case NPS_CALL_SET_CONTEXT:
		err = enter_context(w, ev);
		break;
	case NPS_CALL_DESTROY_EVENT:
		err = forget_event(w, ev);
		break;
	default:
		err = nps_walk__is_memory(info) ? nps_walk__memory(w, ev, &frame)
						: nps_walk__mstx(w, ev, info->call);
	}
	if (w->depth < NPS_WALK_DEPTH)
		w->stack[w->depth++] = frame;
	return err;
}

static int nest_on_event(struct nps_walk *w, const struct nps_event *ev)
{
	if (ev->kind == NPS_EV_TENSOR)
		return 0; /* plans.h has read it */
	if (ev->probe == NPS_PROBE_HCCL_COMM_INIT_ALL && ev->kind == NPS_EV_API &&
	    ev->call.slot[COMM_INDEX_SLOT])
		return 0; /* another communicator of a call that has its row */
	nps_walk__submitted(w, ev);
	/* What a mark's operator takes does not end the calls that it is in. */
	pop_until(w, ev->start, ev->kind == NPS_EV_MARK ? ev->start : ev->start + ev->dur);
	if (ev->kind == NPS_EV_MARK)
		return nps_walk__mark(w, ev);
	if (ev->kind == NPS_EV_SQE)
		return nps_walk__submission(w, ev);
	return on_call(w, ev);
}

/* --- synchronisations --- */

/*
 * The driver's number of the device that a thread calls USER: from its submissions, else by the environment
 * of the process, else the same.
 */
static uint16_t driver_device(const struct nps_walk *w, uint32_t proc, uint16_t user)
{
	const cJSON *env = cJSON_GetObjectItemCaseSensitive(w->model->procs[proc].json, "env");
	const char *list = nps_json_str(env, "ASCEND_RT_VISIBLE_DEVICES", "");
	uint32_t seen = nps_map__get(&w->user_devices, (uint64_t)proc << 16 | user);
	unsigned long device;

	if (seen != NPS_NONE)
		return seen;
	if (!*list)
		return user;
	for (; user && *list; user--) {
		list += strcspn(list, ",");
		list += *list == ',';
	}
	device = isdigit((unsigned char)*list) ? strtoul(list, NULL, 10) : UINT16_MAX;
	return NPS_MIN(device, (unsigned long)UINT16_MAX);
}

uint16_t nps_walk__thread_device(const struct nps_walk *w, uint32_t proc, uint16_t user)
{
	uint64_t devices = w->model->procs[proc].devices;

	if (user != UINT16_MAX)
		return driver_device(w, proc, user);
	return devices && !(devices & (devices - 1)) ? __builtin_ctzll(devices) : UINT16_MAX;
}

/* The device whose work the thread waited for, UINT16_MAX if that is unknown. */
static uint16_t sync_device(const struct nps_walk *w, const struct nps_pending_sync *p)
{
	return p->device != UINT16_MAX ? p->device : nps_walk__thread_device(w, p->proc, p->user);
}

static int resolve_sync(struct nps_walk *w, const struct nps_pending_sync *p)
{
	struct nps_sync sync = { .cover = p->ev->start,
				 .done = p->ev->start + p->ev->dur,
				 .proc = p->proc,
				 .device = sync_device(w, p),
				 .stream = UINT16_MAX },
			*row;
	uint64_t handle, value;

	if (p->call == NPS_CALL_SYNC_DEVICE) {
		if (sync.device == UINT16_MAX)
			return 0;
	} else if (p->call == NPS_CALL_SYNC_STREAM) {
		if (!nps_event_arg(p->ev, NPS_M_STREAM, &handle))
			return 0;
		handle = nps_walk__stream_key(p->proc, p->ev->tid, handle);
		if (!nps_history__at(&w->streams, handle, sync.cover, &value) || value == NPS_NONE)
			return 0; /* nothing was queued there since the capture began */
		sync.device = value >> 16;
		sync.stream = value;
	} else {
		const struct nps_sub *sub;

		if (!nps_event_arg(p->ev, NPS_M_EVENT, &handle) ||
		    !nps_history__at(&w->event_marks, nps_names__key(p->proc, handle), sync.cover, &value) ||
		    value == NPS_NONE)
			return 0;
		sub = &NPS_AT(&w->model->subs, struct nps_sub, nps_walk__marked(value).last);
		sync.cover = sub->open_ended ? sub->begin : sub->end;
		sync.by_begin = sub->open_ended;
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
static int forget_shared_sizes(struct nps_walk *w)
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

static int resolve_syncs(struct nps_walk *w)
{
	int err = nps_history__finish(&w->streams);

	if (err)
		return err;
	err = nps_history__finish(&w->event_marks);
	for (size_t i = 0; !err && i < w->syncs.len; i++)
		err = resolve_sync(w, &NPS_AT(&w->syncs, struct nps_pending_sync, i));
	return err;
}

static int nest_finish(struct nps_walk *w)
{
	int err = resolve_syncs(w);

	if (err)
		return err;
	err = nps_walk__finish_timings(w);
	if (err)
		return err;
	err = forget_shared_sizes(w);
	if (err)
		return err;
	nps_walk__name_pending(w);
	err = nps_walk__assign_operands(w);
	if (err)
		return err;
	err = nps_walk__finish_memory(w);
	if (err)
		return err;
	return nps_walk__finish_marks(w);
}

/* --- order --- */

/*
 * Rows of the events by thread, then start, outer calls before inner ones. A mark comes before
 * a call of the same instant, a submission after it.
 */
static int sort_events(const struct nps_session *model, struct nps_vec *keys)
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
		key[i] = (struct nps_key){ .key = ev->kind == NPS_EV_MARK || ev->kind == NPS_EV_TENSOR
							  ? 0
							  : (~(ev->start + ev->dur)) << 1 |
								    (ev->kind == NPS_EV_SQE),
					   .row = i,
					   .group = row };
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

/* After the last event of a thread. */
static void end_thread(struct nps_walk *w)
{
	while (w->op_limit != UINT64_MAX)
		nps_walk__close_op(w);
	w->run = NULL;
}

static void new_thread(struct nps_walk *w, const struct nps_event *ev)
{
	end_thread(w);
	w->proc_row = nps_map__get(&w->model->proc_of, ev->pid);
	w->proc = &w->model->procs[w->proc_row];
	w->tid = ev->tid;
	w->depth = 0;
	w->op_row = NPS_NONE;
	w->open_mark = NPS_NONE;
	w->op_limit = UINT64_MAX;
	w->outer_ops = 0;
	w->device = w->user = UINT16_MAX;
	w->sent.n = 0;
}

/* Walks the events, the rows of KEYS. */
static int walk_events(struct nps_walk *w, const struct nps_vec *keys)
{
	struct nps_session *model = w->model;
	uint32_t group = NPS_NONE;
	int err = 0;

	nps_progress__stage(model->progress, "matching calls", keys->len, "records");
	for (size_t i = 0; !err && i < keys->len; i++) {
		const struct nps_key *key = &NPS_AT(keys, struct nps_key, i);
		const struct nps_event *ev = &NPS_AT(&model->events, struct nps_event, key->row);

		if (!(i & (COOL - 1))) {
			nps_vec__cool(&model->events);
			nps_vec__cool(keys);
		}
		nps_progress__add(model->progress, 1);
		if (key->group != group)
			new_thread(w, ev);
		group = key->group;
		err = nest_on_event(w, ev);
	}
	end_thread(w);
	return err;
}

int nps_nest__run(struct nps_session *model, struct nps_names *names)
{
	struct nps_walk *w = calloc(1, sizeof(*w));
	struct nps_vec keys;
	int err;

	if (!w)
		return -ENOMEM;
	*w = (struct nps_walk){ .model = model, .names = names };
	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	nps_vec__init(&w->pending, model->tmpfd, sizeof(struct nps_pending_name));
	nps_vec__init(&w->syncs, model->tmpfd, sizeof(struct nps_pending_sync));
	nps_vec__init(&w->timings, model->tmpfd, sizeof(struct nps_pending_timing));
	nps_walk__init_marks(w);
	nps_history__init(&w->streams, model->tmpfd);
	nps_history__init(&w->event_marks, model->tmpfd);
	w->node_name = nps_strings__addz(&model->strings, "launch");
	for (unsigned int i = 0; i < NPS_PROBE_MAX; i++)
		w->symbols[i] = nps_probe_info(i)
					? nps_strings__addz(&model->strings, nps_probe_info(i)->symbol)
					: NPS_NONE;
	err = sort_events(model, &keys);
	if (err)
		goto out;
	nps_op_ends__find(model, &keys);
	err = walk_events(w, &keys);
	if (err)
		goto out;
	err = nest_finish(w);
out:
	nps_vec__free(&keys);
	nps_vec__free(&w->pending);
	nps_vec__free(&w->syncs);
	nps_vec__free(&w->timings);
	nps_history__free(&w->streams);
	nps_history__free(&w->event_marks);
	nps_map__free(&w->user_devices);
	nps_walk__free_marks(w);
	free(w);
	return err;
}

int nps_nest__number(struct nps_session *model)
{
	struct nps_vec keys;
	int err = 0;

	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	for (uint32_t p = 0; p < model->nprocs; p++) {
		struct nps_proc *proc = &model->procs[p];
		size_t n = proc->cann.len;
		struct nps_cann *rows = proc->cann.data;
		struct nps_key *key;

		if (!n)
			continue;
		keys.len = 0;
		err = n >= NPS_NONE / 2 ? -EOVERFLOW : nps_vec__resize(&keys, 2 * n);
		if (err)
			break;
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
