/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's times from the job's own events: how long from one to another, and what waited for which. */
#include "import/session/nest_walk.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define STEP_NS 1000.0 /* resolution of an event's time: a tick of the device's counter, of two events */
#define STAMP_NS 1000 /* aclrtEventGetTimestamp returns whole microseconds */
#define FLOAT_ERROR 0x1p-23 /* of a result of 24 bits, rounded more than once */

uint64_t nps_walk__mark_value(uint32_t first, uint32_t last)
{
	return (uint64_t)first << 32 | last;
}

struct nps_marked nps_walk__marked(uint64_t value)
{
	return (struct nps_marked){ .first = value >> 32, .last = (uint32_t)value };
}

int nps_walk__timing(struct nps_walk *w, const struct nps_event *ev, uint32_t wait)
{
	struct nps_pending_timing *timing;

	if (ev->ret || ev->flags)
		return 0;
	timing = nps_vec__push(&w->timings);
	if (!timing)
		return -errno;
	*timing = (struct nps_pending_timing){ ev, w->proc_row, wait };
	return 0;
}

/*
 * The record that event HANDLE stood for during the whole call EV. An event whose tasks are on two streams
 * did not happen in their order.
 */
static bool marked(const struct nps_walk *w, uint32_t proc, const struct nps_event *ev, uint64_t handle,
		   struct nps_marked *mark)
{
	const struct nps_sub *subs = w->model->subs.data;
	uint64_t key = nps_names__key(proc, handle), value, later;

	if (!nps_history__at(&w->event_marks, key, ev->start, &value) || value == NPS_NONE ||
	    !nps_history__at(&w->event_marks, key, ev->start + ev->dur, &later) || later != value)
		return false;
	*mark = nps_walk__marked(value);
	return subs[mark->first].device == subs[mark->last].device &&
	       subs[mark->first].stream == subs[mark->last].stream;
}

/* aclrtEventElapsedTime returns ms as a float. */
static bool elapsed(const struct nps_walk *w, const struct nps_pending_timing *p, struct nps_timing *t)
{
	const struct nps_event_call *call = &p->ev->call; /* two of its values mean events */
	float ms;

	memcpy(&ms, &call->slot[2], sizeof(ms));
	t->kind = NPS_TIMING_BETWEEN;
	t->ns = (double)ms * 1e6;
	t->error = STEP_NS + fabs(t->ns) * FLOAT_ERROR;
	return isfinite(ms) && marked(w, p->proc, p->ev, call->slot[0], &t->from) &&
	       marked(w, p->proc, p->ev, call->slot[1], &t->to);
}

static bool timestamp(const struct nps_walk *w, const struct nps_pending_timing *p, struct nps_timing *t)
{
	uint64_t handle, us;

	if (!nps_event_arg(p->ev, NPS_M_EVENT, &handle) || !nps_event_arg(p->ev, NPS_M_ARG, &us))
		return false;
	t->kind = NPS_TIMING_AT;
	t->at = us * STAMP_NS;
	t->error = STAMP_NS;
	return us <= UINT64_MAX / STAMP_NS && marked(w, p->proc, p->ev, handle, &t->to);
}

static bool waited(const struct nps_walk *w, const struct nps_pending_timing *p, struct nps_timing *t)
{
	uint64_t handle;

	t->kind = NPS_TIMING_WAIT;
	t->to = (struct nps_marked){ p->wait, p->wait };
	return nps_event_arg(p->ev, NPS_M_EVENT, &handle) && marked(w, p->proc, p->ev, handle, &t->from);
}

static bool resolve(const struct nps_walk *w, const struct nps_pending_timing *p, struct nps_timing *t)
{
	if (p->wait != NPS_NONE)
		return waited(w, p, t);
	return p->ev->probe == NPS_PROBE_EVENT_ELAPSED ? elapsed(w, p, t) : timestamp(w, p, t);
}

int nps_walk__finish_timings(struct nps_walk *w)
{
	const struct nps_sub *subs = w->model->subs.data;

	for (size_t i = 0; i < w->timings.len; i++) {
		const struct nps_pending_timing *p = &NPS_AT(&w->timings, struct nps_pending_timing, i);
		struct nps_timing timing = { .proc = p->proc }, *row;

		if (!resolve(w, p, &timing))
			continue;
		timing.device = subs[timing.to.last].device;
		if (timing.kind == NPS_TIMING_BETWEEN && subs[timing.from.last].device != timing.device)
			continue; /* two clocks */
		row = nps_vec__push(&w->model->timings);
		if (!row)
			return -errno;
		*row = timing;
	}
	return 0;
}
