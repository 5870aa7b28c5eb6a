/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/completions.h"

#include "import/cann/control.h"

#include <errno.h>

#define CQE_STREAM 0x7fff /* above it is a flag of the driver's */
#define QUEUED 4096 /* above the tasks of a stream that can be on their way: a queue has 1024 entries */

static uint64_t order_stream_key(uint32_t proc, uint32_t device, uint32_t stream)
{
	return (uint64_t)proc << 32 | device << 16 | stream;
}

/* The submissions by stream, and what is known of them. */
struct order {
	struct nps_session *model;
	const struct nps_streams *streams;
	struct nps_map first; /* order_stream_key -> index of its first key */
	struct nps_vec overlapped; /* bool, of each key: see find_overlapped */
};

static int order_find_streams(struct order *o)
{
	const struct nps_sub *subs = o->model->subs.data;
	const struct nps_streams *streams = o->streams;
	const struct nps_key *keys = streams->keys;
	int err = 0;

	for (size_t i = 0; !err && i < streams->n && i < NPS_NONE; i++) {
		const struct nps_sub *sub = &subs[keys[i].row];

		if (!i || keys[i].group != keys[i - 1].group)
			err = nps_map__put(&o->first, order_stream_key(sub->proc, sub->device, sub->stream),
					   i);
	}
	return err;
}

/* The first index from FROM on, in FROM's stream, whose submission began after TIME. */
static size_t first_after(const struct nps_streams *streams, size_t from, uint64_t time)
{
	const struct nps_key *keys = streams->keys;
	size_t low = from, high = streams->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (keys[mid].group == keys[from].group && keys[mid].key <= time)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The latest submission of TASK before AFTER in FROM's stream that can still be on its way; NPS_NONE. */
static uint32_t latest(const struct nps_sub *subs, const struct nps_streams *streams, size_t from,
		       size_t after, uint32_t task)
{
	for (size_t i = after, most = QUEUED; i > from && most; i--, most--)
		if (subs[streams->keys[i - 1].row].task == task)
			return i - 1;
	return NPS_NONE;
}

/*
 * Marks submissions during which another call submitted to their stream, of those before them in its keys:
 * of two calls at a time it is not known whose tasks came first. The submissions of one call began and
 * ended together.
 */
static int find_overlapped(struct order *o)
{
	const struct nps_sub *subs = o->model->subs.data;
	const struct nps_key *keys = o->streams->keys;
	uint64_t before = 0, together = 0; /* latest ends of those that began before, and with it */
	bool several = false; /* calls began with it */
	int err = nps_vec__resize(&o->overlapped, o->streams->n);

	for (size_t i = 0; !err && i < o->streams->n; i++) {
		const struct nps_sub *sub = &subs[keys[i].row];
		bool first = !i || keys[i].group != keys[i - 1].group;

		if (first || keys[i].key != keys[i - 1].key) {
			before = first ? 0 : NPS_MAX(before, together);
			together = sub->end;
			several = false;
		}
		several |= sub->end != together;
		together = NPS_MAX(together, sub->end);
		NPS_AT(&o->overlapped, bool, i) = several || before > sub->begin;
	}
	return err;
}

/* What had ended when the submission at I had: submissions that began by then; 0: not known. */
static uint64_t order_covered(const struct order *o, size_t from, size_t i)
{
	const struct nps_sub *subs = o->model->subs.data;
	const struct nps_streams *streams = o->streams;
	const struct nps_key *keys = streams->keys;
	const struct nps_sub *sub = &subs[keys[i].row];

	if (NPS_AT(&o->overlapped, bool, i))
		return 0;
	/* A call can submit several: those behind it need not have ended yet. */
	if (i + 1 < streams->n && keys[i + 1].group == keys[from].group && keys[i + 1].key <= sub->end)
		return sub->begin - 1;
	return sub->end;
}

static int add_sync(struct nps_session *model, const struct nps_sub *sub, uint64_t cover, uint64_t done)
{
	struct nps_sync *sync = nps_vec__push(&model->syncs);

	if (!sync)
		return -errno;
	*sync = (struct nps_sync){
		.cover = cover, .done = done, .proc = sub->proc, .device = sub->device, .stream = sub->stream
	};
	return 0;
}

/* --- records that the driver read --- */

static bool logs_tasks(const struct nps_device *device)
{
	return !device->has_platform ||
	       (device->platform != NPS_CHIP_950 && device->platform != NPS_CHIP_950_1);
}

static int add_driver(const struct order *o, uint32_t proc, const struct nps_event *ev)
{
	struct nps_session *model = o->model;
	const struct nps_streams *streams = o->streams;
	const struct nps_sub *subs = model->subs.data;
	const struct nps_event_driver_done *cqe = &ev->driver_done;
	uint64_t stream = order_stream_key(proc, cqe->device, cqe->stream & CQE_STREAM);
	uint32_t from = nps_map__get(&o->first, stream), found;
	uint64_t cover;

	if (from == NPS_NONE || cqe->device >= NPS_MAX_DEVICES || !logs_tasks(&model->devices[cqe->device]))
		return 0;
	found = latest(subs, streams, from, first_after(streams, from, ev->start), cqe->task);
	cover = found == NPS_NONE ? 0 : order_covered(o, from, found);
	return cover ? add_sync(model, &subs[streams->keys[found].row], cover, ev->start) : 0;
}

static int of_driver(const struct order *o)
{
	const struct nps_session *model = o->model;
	int err = 0;

	for (uint32_t p = 0; p < model->nprocs; p++) {
		const struct nps_proc *proc = &model->procs[p];
		const struct nps_event *ev = proc->drivers.data;

		if (nps_proc__in_container(proc))
			continue;
		for (size_t i = 0; !err && i < proc->drivers.len; i++)
			if (ev[i].kind == NPS_EV_DRIVER_DONE && !(ev[i].driver_done.flags & NPS_CQE_FAILED))
				err = add_driver(o, p, &ev[i]);
	}
	return err;
}

/* --- as the runtime collects them --- */

int nps_completions__keep(struct nps_session *model, uint32_t proc, const struct nps_event *ev)
{
	const uint16_t wrong = NPS_CQE_DROP | NPS_CQE_ERROR | NPS_CQE_ACC_ERROR;
	const struct nps_event_cqe *got = &ev->cqe;
	struct nps_cqe *cqe;
	bool timed = got->sqe_type == NPS_SQE_EVENT_RECORD || got->sqe_type == NPS_SQE_PLACE_HOLDER;

	if (ev->ret || ev->flags & NPS_F_SLOT_FAULT(1) || got->flags & wrong ||
	    got->device >= NPS_MAX_DEVICES)
		return 0;
	cqe = nps_vec__push(&model->cqes);
	if (!cqe)
		return -errno;
	*cqe = (struct nps_cqe){ .done = ev->start + ev->dur,
				 .count = timed && got->counter > UINT16_MAX ? got->counter : 0,
				 .proc = proc,
				 .device = got->device,
				 .stream = got->stream,
				 .task = got->task,
				 .sqe_type = got->sqe_type };
	return 0;
}

struct collected {
	const struct order *o;
	struct nps_map
		behind; /* index of a stream's first key -> index behind the latest that a record was of */
	struct nps_vec
		before; /* uint32_t, of each key: index of the one before with its stream, task and type */
};

static int find_before(struct collected *c)
{
	const struct nps_sub *subs = c->o->model->subs.data;
	const struct nps_key *keys = c->o->streams->keys;
	struct nps_map last = { 0 };
	int err = nps_vec__resize(&c->before, c->o->streams->n);

	for (size_t i = 0; !err && i < c->o->streams->n && i < NPS_NONE; i++) {
		const struct nps_sub *sub = &subs[keys[i].row];
		uint64_t key = (uint64_t)keys[i].group << 24 | (uint64_t)sub->sqe_type << 16 | sub->task;

		NPS_AT(&c->before, uint32_t, i) = NPS_NONE;
		if (sub->task > UINT16_MAX)
			continue; /* of no record */
		NPS_AT(&c->before, uint32_t, i) = nps_map__get(&last, key);
		err = nps_map__put(&last, key, i);
	}
	nps_map__free(&last);
	return err;
}

/*
 * The submission that CQE is of, as an index of the keys; NPS_NONE if that is not known. The runtime can
 * collect late, when the task's number is in use again. But the records of a stream come in order, so the
 * submission follows the latest one that was found.
 */
static uint32_t submission(struct collected *c, const struct nps_cqe *cqe, uint32_t from)
{
	const struct nps_sub *subs = c->o->model->subs.data;
	uint32_t behind = nps_map__get(&c->behind, from), before;
	uint32_t found =
		latest(subs, c->o->streams, from, first_after(c->o->streams, from, cqe->done), cqe->task);

	if (found == NPS_NONE || subs[c->o->streams->keys[found].row].sqe_type != cqe->sqe_type)
		return NPS_NONE;
	if (behind != NPS_NONE && found < behind)
		return NPS_NONE; /* it came out of order: it may be of an earlier one */
	before = NPS_AT(&c->before, uint32_t, found);
	return before != NPS_NONE && before >= (behind == NPS_NONE ? from : behind) ? NPS_NONE : found;
}

/* The device's time of an event. */
static int add_timing(struct nps_session *model, const struct nps_cqe *cqe, uint32_t row)
{
	uint64_t khz = model->devices[cqe->device].freq_khz, ms;
	struct nps_timing *timing;

	if (!cqe->count || !khz || khz > UINT64_MAX / 1000000)
		return 0;
	ms = cqe->count / khz;
	if (ms > UINT64_MAX / 1000000 - 1)
		return 0;
	timing = nps_vec__push(&model->timings);
	if (!timing)
		return -errno;
	*timing = (struct nps_timing){ .kind = NPS_TIMING_AT,
				       .to = { row, row },
				       .at = ms * 1000000 + cqe->count % khz * 1000000 / khz,
				       .error = 1 + 1e6 / (double)khz,
				       .proc = cqe->proc,
				       .device = cqe->device };
	return 0;
}

static int add_collected(struct collected *c, const struct nps_cqe *cqe)
{
	const struct nps_device *device = &c->o->model->devices[cqe->device];
	uint32_t from = nps_map__get(&c->o->first, order_stream_key(cqe->proc, cqe->device, cqe->stream)),
		 found, row;
	uint64_t cover;
	int err;

	if (from == NPS_NONE || !device->has_platform || device->platform != NPS_CHIP_910B)
		return 0;
	found = submission(c, cqe, from);
	cover = found == NPS_NONE ? 0 : order_covered(c->o, from, found);
	if (!cover)
		return 0;
	row = c->o->streams->keys[found].row;
	err = nps_map__put(&c->behind, from, found + 1);
	if (err)
		return err;
	err = add_sync(c->o->model, &NPS_AT(&c->o->model->subs, struct nps_sub, row), cover, cqe->done);
	if (err)
		return err;
	return add_timing(c->o->model, cqe, row);
}

/* The records of one thread's CPU are not in order with those of another. */
static int of_runtime(const struct order *o)
{
	struct nps_session *model = o->model;
	struct collected c = { .o = o };
	size_t n = NPS_MIN(model->cqes.len, (size_t)NPS_NONE - 1);
	struct nps_vec keys;
	struct nps_key *key;
	int err;

	if (!n)
		return 0;
	nps_vec__init(&keys, model->tmpfd, sizeof(struct nps_key));
	nps_vec__init(&c.before, model->tmpfd, sizeof(uint32_t));
	err = nps_vec__resize(&keys, 2 * n);
	if (err)
		goto out;
	err = find_before(&c);
	if (err)
		goto out;
	key = keys.data;
	for (size_t i = 0; i < n; i++)
		key[i] = (struct nps_key){ .key = NPS_AT(&model->cqes, struct nps_cqe, i).done, .row = i };
	nps_sort_keys(key, key + n, n);
	for (size_t i = 0; !err && i < n; i++)
		err = add_collected(&c, &NPS_AT(&model->cqes, struct nps_cqe, key[i].row));
out:
	nps_vec__free(&keys);
	nps_vec__free(&c.before);
	nps_map__free(&c.behind);
	return err;
}

static bool has_records(const struct nps_session *model)
{
	for (uint32_t p = 0; p < model->nprocs; p++)
		if (model->procs[p].drivers.len)
			return true;
	return model->cqes.len;
}

int nps_completions__add(struct nps_session *model, const struct nps_streams *streams)
{
	struct order o = { .model = model, .streams = streams };
	int err;

	if (!has_records(model))
		return 0;
	nps_vec__init(&o.overlapped, model->tmpfd, sizeof(bool));
	err = order_find_streams(&o);
	if (err)
		goto out;
	err = find_overlapped(&o);
	if (err)
		goto out;
	err = of_driver(&o);
	if (err)
		goto out;
	err = of_runtime(&o);
out:
	nps_vec__free(&o.overlapped);
	nps_map__free(&o.first);
	return err;
}
