/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/completions.h"

#include "cann/control.h"

#include <errno.h>

#define CQE_STREAM 0x7fff /* above it is a flag of the driver's */
#define CQE_ERROR 0x8000 /* of its first 16 bits: the task failed, or the CQE tells of something else */
#define QUEUED 4096 /* above the tasks of a stream that can be on their way: a queue has 1024 places */

static uint64_t stream_key(uint32_t proc, uint32_t device, uint32_t stream)
{
	return (uint64_t)proc << 32 | device << 16 | stream;
}

/* stream_key -> index of its first key */
static int find_streams(const struct nps_sub *subs, const struct nps_streams *streams, struct nps_map *first)
{
	const struct nps_key *keys = streams->keys;
	int err = 0;

	for (size_t i = 0; !err && i < streams->n && i < NPS_NONE; i++) {
		const struct nps_sub *sub = &subs[keys[i].row];

		if (!i || keys[i].group != keys[i - 1].group)
			err = nps_map__put(first, stream_key(sub->proc, sub->device, sub->stream), i);
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

/* What the CQE covers: submissions that began by then; 0: nothing that is known. */
static uint64_t covered(const struct nps_sub *subs, const struct nps_streams *streams, size_t from,
			uint32_t task, uint64_t time)
{
	const struct nps_key *keys = streams->keys;
	size_t after = first_after(streams, from, time);

	for (size_t i = after, most = QUEUED; i > from && most; i--, most--) {
		const struct nps_sub *sub = &subs[keys[i - 1].row];

		if (sub->task != task)
			continue;
		/* Of two calls at a time it is not known whose tasks came first. */
		if (i - 1 > from && keys[i - 2].key < sub->begin && subs[keys[i - 2].row].end > sub->begin)
			return 0;
		/* A call can submit several: those behind it need not have ended yet. */
		if (i < streams->n && keys[i].group == keys[from].group && keys[i].key <= sub->end)
			return sub->begin - 1;
		return sub->end;
	}
	return 0;
}

static bool tells_tasks(const struct nps_device *device)
{
	return !device->has_platform ||
	       (device->platform != NPS_CHIP_950 && device->platform != NPS_CHIP_950_1);
}

static int add(struct nps_recording *model, const struct nps_streams *streams, const struct nps_map *first,
	       uint32_t proc, const struct nps_driver_event *cqe)
{
	uint32_t device = cqe->args[0] & 0xffff, stream = cqe->args[1] >> 32 & CQE_STREAM,
		 task = cqe->args[1] >> 48;
	uint32_t from = nps_map__get(first, stream_key(proc, device, stream));
	struct nps_sync *sync;
	uint64_t cover;

	if (from == NPS_NONE || device >= NPS_MAX_DEVICES || !tells_tasks(&model->devices[device]))
		return 0;
	cover = covered(model->subs.data, streams, from, task, cqe->start);
	if (!cover)
		return 0;
	sync = nps_vec__push(&model->syncs);
	if (!sync)
		return -errno;
	*sync = (struct nps_sync){
		.cover = cover, .done = cqe->start, .proc = proc, .device = device, .stream = stream
	};
	return 0;
}

int nps_completions__add(struct nps_recording *model, const struct nps_streams *streams)
{
	struct nps_map first = { 0 };
	int err = find_streams(model->subs.data, streams, &first);

	for (uint32_t p = 0; p < model->nprocs; p++) {
		const struct nps_proc *proc = &model->procs[p];
		const struct nps_driver_event *ev = proc->drivers.data;

		if (nps_proc__in_container(proc))
			continue;
		for (size_t i = 0; !err && i < proc->drivers.len; i++)
			if (ev[i].kind == NPS_EV_DRIVER_DONE && !(ev[i].args[1] & CQE_ERROR))
				err = add(model, streams, &first, p, &ev[i]);
	}
	nps_map__free(&first);
	return err;
}
