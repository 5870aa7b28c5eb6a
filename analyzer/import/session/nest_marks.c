/* SPDX-License-Identifier: BSD-2-Clause */
/* mstx: marks and ranges that the job itself set. */
#include "import/session/nest_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* As ENUM_MSTX_EVENT_TYPE has them. */
#define MARKER 0
#define START_END 2

struct range_end {
	uint64_t range, time;
	uint32_t proc, tid;
};

void nps_walk__init_marks(struct nps_walk *w)
{
	nps_vec__init(&w->range_ends, w->model->tmpfd, sizeof(struct range_end));
}

void nps_walk__free_marks(struct nps_walk *w)
{
	nps_vec__free(&w->range_ends);
	nps_map__free(&w->range_starts);
	nps_map__free(&w->domains);
}

static uint64_t argument(const struct nps_event *ev, enum nps_meaning meaning)
{
	uint64_t value = 0;

	nps_event_arg(ev, meaning, &value);
	return value;
}

static uint32_t message(const struct nps_walk *w, const struct nps_event *ev)
{
	uint64_t id;

	return nps_event_arg(ev, NPS_M_TEXT, &id) ? nps_session__text(w->model, id) : NPS_NONE;
}

static struct nps_mstx_mark *mark_add(struct nps_walk *w, const struct nps_event *ev, uint8_t type)
{
	struct nps_mstx_mark *mark = nps_vec__push(&w->proc->marks);

	if (mark)
		*mark = (struct nps_mstx_mark){ .start = ev->start,
						.end = type == MARKER ? ev->start : 0,
						.range = type == MARKER ? 0 : argument(ev, NPS_M_RANGE),
						.domain = argument(ev, NPS_M_DOMAIN),
						.tid = w->tid,
						.end_tid = w->tid,
						.message = message(w, ev),
						.outer = NPS_NONE,
						.type = type };
	return mark;
}

/*
 * Ranges are known by their number, and may end in another thread. Without a consumer in the job all have
 * number 0: then they are taken to nest in their thread.
 */
static int range_begin(struct nps_walk *w, const struct nps_event *ev)
{
	struct nps_mstx_mark *mark = mark_add(w, ev, START_END);
	uint32_t row = w->proc->marks.len - 1;

	if (!mark)
		return -errno;
	if (mark->range)
		return nps_map__put(&w->range_starts, nps_names__key(w->proc_row, mark->range), row);
	mark->outer = w->open_mark;
	w->open_mark = row;
	return 0;
}

static int range_end(struct nps_walk *w, const struct nps_event *ev)
{
	uint64_t range = argument(ev, NPS_M_RANGE);
	struct range_end *later;
	struct nps_mstx_mark *mark;

	if (range) {
		later = nps_vec__push(&w->range_ends);
		if (!later)
			return -errno;
		*later = (struct range_end){ range, ev->start, w->proc_row, w->tid };
	} else if (w->open_mark != NPS_NONE) {
		mark = &NPS_AT(&w->proc->marks, struct nps_mstx_mark, w->open_mark);
		mark->end = ev->start;
		w->open_mark = mark->outer;
	}
	return 0;
}

int nps_walk__mstx(struct nps_walk *w, const struct nps_event *ev, enum nps_call call)
{
	uint32_t name;

	switch (call) {
	case NPS_CALL_MSTX_MARK:
		return mark_add(w, ev, MARKER) ? 0 : -errno;
	case NPS_CALL_MSTX_START:
		return range_begin(w, ev);
	case NPS_CALL_MSTX_END:
		return range_end(w, ev);
	case NPS_CALL_MSTX_DOMAIN:
		name = message(w, ev);
		return name == NPS_NONE
			       ? 0
			       : nps_map__put(&w->domains,
					      nps_names__key(w->proc_row, argument(ev, NPS_M_DOMAIN)), name);
	default:
		return 0;
	}
}

/* One that was made before the capture is known by its handle. */
static uint32_t name_of_domain(struct nps_walk *w, uint32_t proc, uint64_t handle)
{
	uint32_t name = nps_map__get(&w->domains, nps_names__key(proc, handle));
	char text[40];

	if (name != NPS_NONE)
		return name;
	snprintf(text, sizeof(text), "domain 0x%" PRIx64, handle);
	return nps_strings__addz(&w->model->strings, text);
}

/* Threads were walked one after the other: their records about ranges of other threads are joined here. */
int nps_walk__finish_marks(struct nps_walk *w)
{
	uint32_t unnamed = nps_strings__addz(&w->model->strings, "default");

	if (unnamed == NPS_NONE)
		return -ENOMEM;
	for (size_t i = 0; i < w->range_ends.len; i++) {
		const struct range_end *later = &NPS_AT(&w->range_ends, struct range_end, i);
		uint32_t row = nps_map__get(&w->range_starts, nps_names__key(later->proc, later->range));
		struct nps_mstx_mark *mark;

		if (row == NPS_NONE)
			continue;
		mark = &NPS_AT(&w->model->procs[later->proc].marks, struct nps_mstx_mark, row);
		if (mark->range != later->range || mark->start > later->time)
			continue;
		mark->end = later->time;
		mark->end_tid = later->tid;
	}
	for (uint32_t p = 0; p < w->model->nprocs; p++)
		for (size_t i = 0; i < w->model->procs[p].marks.len; i++) {
			struct nps_mstx_mark *mark =
				&NPS_AT(&w->model->procs[p].marks, struct nps_mstx_mark, i);

			mark->domain_name = mark->domain ? name_of_domain(w, p, mark->domain) : unnamed;
			if (mark->domain_name == NPS_NONE)
				return -ENOMEM;
		}
	return 0;
}
