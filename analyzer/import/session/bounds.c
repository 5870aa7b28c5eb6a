/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host bounds: what the host's calls prove about a task whose times were not measured. A stream is in
 * order, so every bound holds for its neighbours too, forwards and backwards. Times of events that the job
 * itself queried carry bounds from one event to another, and a wait for an event from one stream to
 * another.
 */
#include "import/session/bounds.h"

#include "import/session/session_reader.h"
#include "import/session/syncs.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDS 8 /* a timing of one stream may bound other streams, through further timings */
#define SLEW_MOST 500e-6 /* that the kernel gives to CLOCK_MONOTONIC */
#define DAY 86400e9

/* --- one stream --- */

static void lower(const struct nps_sub *const *subs, const struct nps_task *const *tasks, uint64_t error,
		  const struct nps_pin *pins, size_t n, struct nps_bounds *bounds)
{
	uint64_t low = 0;

	for (size_t i = 0; i < n; i++) {
		low = NPS_MAX(low, subs[i]->begin);
		if (tasks[i])
			low = NPS_MAX(low, tasks[i]->start - NPS_MIN(error, tasks[i]->start));
		bounds[i] = (struct nps_bounds){ low, UINT64_MAX, UINT64_MAX, UINT64_MAX };
		if (!pins || !pins[i].low)
			continue;
		/* It ended after that moment, and those behind it began after its end. */
		low = NPS_MAX(low, pins[i].low);
		bounds[i].end_low = low;
	}
}

static void upper(const struct nps_sub *const *subs, const struct nps_task *const *tasks, uint64_t error,
		  const struct nps_pin *pins, size_t n, const struct nps_sync *syncs, size_t nsyncs,
		  struct nps_bounds *bounds)
{
	/* Behind the latest sync of each kind, by end and by begin, that covers no submission behind I. */
	size_t over = nsyncs, begun = nsyncs;
	uint64_t high = UINT64_MAX;

	for (size_t i = n; i-- > 0;) {
		for (; over && (syncs[over - 1].by_begin || syncs[over - 1].cover >= subs[i]->end); over--)
			if (!syncs[over - 1].by_begin)
				high = NPS_MIN(high, syncs[over - 1].done);
		for (; begun && (!syncs[begun - 1].by_begin || syncs[begun - 1].cover >= subs[i]->begin);
		     begun--)
			if (syncs[begun - 1].by_begin)
				high = NPS_MIN(high, syncs[begun - 1].done);
		if (tasks[i])
			high = NPS_MIN(high, nps_add_sat(tasks[i]->end, error));
		bounds[i].end_high = NPS_MAX(high, bounds[i].start_low);
		if (bounds[i].end_low != UINT64_MAX)
			bounds[i].end_low = NPS_MIN(bounds[i].end_low, bounds[i].end_high);
		if (!pins || pins[i].high == UINT64_MAX)
			continue;
		/* It began before that moment, and those before it ended before its start. */
		high = NPS_MIN(high, pins[i].high);
		bounds[i].start_high = NPS_MAX(high, bounds[i].start_low);
	}
}

void nps_bounds__stream(const struct nps_sub *const *subs, const struct nps_task *const *tasks,
			uint64_t error, const struct nps_pin *pins, size_t n, const struct nps_sync *syncs,
			size_t nsyncs, struct nps_bounds *bounds)
{
	lower(subs, tasks, error, pins, n, bounds);
	upper(subs, tasks, error, pins, n, syncs, nsyncs, bounds);
}

/* --- all of them --- */

struct bounding {
	struct nps_session *model;
	const struct nps_streams *streams;
	const struct nps_task *const *tasks;
	struct nps_bounds *bounds;
	struct nps_vec subs; /* const struct nps_sub * in the order of the streams */
	struct nps_vec syncs; /* struct nps_sync: of one stream */
	struct nps_vec pins; /* struct nps_pin, in that order */
	struct nps_vec ordinal; /* uint32_t: of a submission in that order */
	struct nps_vec edges; /* struct nps_timing between two events */
	bool moved;
	size_t contradict;
};

static int collect_syncs(struct bounding *b, const struct nps_sub *of)
{
	struct nps_sync_walk walk = nps_syncs__of(b->model, of->proc, of->device, of->stream);
	const struct nps_sync *next;

	b->syncs.len = 0;
	while ((next = nps_syncs__next(&walk))) {
		struct nps_sync *sync = nps_vec__push(&b->syncs);

		if (!sync)
			return -errno;
		*sync = *next;
	}
	return 0;
}

/* Does [FROM, TO) have a task that was not measured? */
static bool any_open(const struct bounding *b, size_t from, size_t to)
{
	while (from < to && b->tasks[from])
		from++;
	return from < to;
}

/* One pass over every stream, with the pins as they are. */
static int streams_sweep(struct bounding *b)
{
	const struct nps_sub *const *subs = b->subs.data;
	const struct nps_pin *pins = b->pins.len ? b->pins.data : NULL;
	const struct nps_key *keys = b->streams->keys;
	size_t n = b->streams->n, to;

	for (size_t from = 0; from < n; from = to) {
		int err;

		for (to = from + 1; to < n && keys[to].group == keys[from].group;)
			to++;
		if (!pins && !any_open(b, from, to))
			continue;
		err = collect_syncs(b, subs[from]);
		if (err)
			return err;
		nps_bounds__stream(subs + from, b->tasks + from, nps_clock_align__error(b->model, subs[from]),
				   pins ? pins + from : NULL, to - from, b->syncs.data, b->syncs.len,
				   b->bounds + from);
	}
	return 0;
}

/* --- what events prove --- */

static struct nps_pin *pin(struct bounding *b, uint32_t sub)
{
	return &NPS_AT(&b->pins, struct nps_pin, NPS_AT(&b->ordinal, uint32_t, sub));
}

/* When an event happened, as far as it is known: in or between the tasks of the call that recorded it. */
static struct nps_pin moment(struct bounding *b, const struct nps_marked *event)
{
	uint32_t first = NPS_AT(&b->ordinal, uint32_t, event->first),
		 last = NPS_AT(&b->ordinal, uint32_t, event->last);
	struct nps_pin at = { b->bounds[first].start_low, b->bounds[last].end_high };

	at.low = NPS_MAX(at.low, pin(b, event->last)->low);
	at.high = NPS_MIN(at.high, pin(b, event->first)->high);
	return at;
}

static void raise_low(struct bounding *b, uint32_t sub, uint64_t low)
{
	struct nps_pin *p = pin(b, sub);

	if (low <= p->low)
		return;
	p->low = low;
	b->moved = true;
}

static void sink_high(struct bounding *b, uint32_t sub, uint64_t high)
{
	struct nps_pin *p = pin(b, sub);

	if (high >= p->high)
		return;
	p->high = high;
	b->moved = true;
}

/* AT moved by NS, which may be negative: an open end stays open. */
static struct nps_pin pin_moved(struct nps_pin at, double ns, double error)
{
	int64_t low = (int64_t)floor(ns - error), high = (int64_t)ceil(ns + error);
	struct nps_pin to;

	to.low = low < 0 ? at.low - NPS_MIN(at.low, (uint64_t)-low) : nps_add_sat(at.low, (uint64_t)low);
	if (at.high == UINT64_MAX)
		to.high = UINT64_MAX;
	else
		to.high = high < 0 ? at.high - NPS_MIN(at.high, (uint64_t)-high)
				   : nps_add_sat(at.high, (uint64_t)high);
	return to;
}

static void tighten(struct bounding *b, const struct nps_marked *event, struct nps_pin to)
{
	struct nps_pin at = moment(b, event);

	if (to.low > at.low)
		raise_low(b, event->last, to.low);
	if (to.high < at.high)
		sink_high(b, event->first, to.high);
}

static bool pins_overlap(struct nps_pin x, struct nps_pin y)
{
	return x.low <= y.high && y.low <= x.high;
}

/* Returns false if the two moments cannot lie so. */
static bool apply_between(struct bounding *b, const struct nps_timing *t)
{
	struct nps_pin from = moment(b, &t->from), to = moment(b, &t->to), there, back;

	there = pin_moved(from, t->ns, t->error);
	back = pin_moved(to, -t->ns, t->error);
	if (!pins_overlap(there, to) || !pins_overlap(back, from))
		return false;
	tighten(b, &t->to, there);
	tighten(b, &t->from, back);
	return true;
}

static bool apply(struct bounding *b, const struct nps_timing *t)
{
	uint32_t wait = t->to.last;
	struct nps_pin event;
	uint64_t done;

	if (t->kind == NPS_TIMING_BETWEEN)
		return apply_between(b, t);
	event = moment(b, &t->from);
	done = b->bounds[NPS_AT(&b->ordinal, uint32_t, wait)].end_high;
	if (done < event.low)
		return false;
	raise_low(b, wait, event.low);
	if (done < event.high)
		sink_high(b, t->from.first, done);
	return true;
}

/* Forwards, so that a chain of events takes one pass, and backwards. */
static void apply_all(struct bounding *b)
{
	const struct nps_timing *edges = b->edges.data;

	b->contradict = 0;
	for (size_t i = 0; i < b->edges.len; i++)
		b->contradict += !apply(b, &edges[i]);
	for (size_t i = b->edges.len; i-- > 0;)
		apply(b, &edges[i]);
}

/* --- the device's own time --- */

/* How much faster or slower CLOCK_MONOTONIC may have run than the device's counter. */
static double rate_error(const struct nps_session *model)
{
	const struct nps_clock *c = model->clocks.data;
	double worst = model->clocks.len > 1 ? 0 : SLEW_MOST;

	for (size_t i = 1; i < model->clocks.len; i++) {
		double raw = (double)(c[i].raw - c[i - 1].raw), mono = (double)(c[i].mono - c[i - 1].mono);
		double read =
			(double)(c[i].raw_after - c[i].raw) + (double)(c[i - 1].raw_after - c[i - 1].raw);

		if (raw > 0)
			worst = fmax(worst, (fabs(mono - raw) + read) / raw);
	}
	return NPS_RATE_UNKNOWN + fmin(worst, SLEW_MOST);
}

static int add_edge(struct bounding *b, const struct nps_timing *timing, double rate)
{
	struct nps_timing *edge;

	if (!isfinite(timing->ns) || fabs(timing->ns) > DAY)
		return 0;
	edge = nps_vec__push(&b->edges);
	if (!edge)
		return -errno;
	*edge = *timing;
	edge->error += fabs(timing->ns) * rate;
	return 0;
}

/* By process, device and what the device's clock showed. */
static int by_stamp(const void *x, const void *y)
{
	const struct nps_timing *a = *(const struct nps_timing *const *)x,
				*b = *(const struct nps_timing *const *)y;

	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

/* The clock of one device, and where a walk through its timestamps is. */
struct stamp_clock {
	struct nps_device_log log;
	uint64_t khz;
	size_t knot, sample;
};

/* Where the device's clock is known, the moment itself is. */
static void align_stamp(struct bounding *b, const struct nps_timing *t, struct stamp_clock *clock)
{
	uint64_t khz = clock->khz, ms = t->at / 1000000, ns = t->at % 1000000;
	struct nps_instant raw, at;
	double error;

	if (!clock->log.fitted || khz > UINT64_MAX / 1000000 || ms > UINT64_MAX / (khz + 1) - 1 ||
	    !nps_clock_map__at(&clock->log.clock, ms * khz + ns * khz / 1000000, &clock->knot, &raw))
		return;
	at = nps_host_mono(b->model->clocks.data, b->model->clocks.len, raw.ns, &clock->sample);
	/* rounded down, and twice to a tick: by the counter, and here */
	error = raw.error + at.error + t->error + 2e6 / (double)khz;
	tighten(b, &t->to, pin_moved((struct nps_pin){ at.ns, at.ns }, 0, error));
}

/* Timestamps of one device: each against the one before, and against its clock. */
static int stamps(struct bounding *b, double rate)
{
	const struct nps_timing *all = b->model->timings.data, **sorted;
	size_t n = b->model->timings.len, nstamps = 0;
	struct stamp_clock clock = { 0 };
	int err = 0;

	sorted = calloc(n + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (all[i].kind == NPS_TIMING_AT)
			sorted[nstamps++] = &all[i];
	qsort(sorted, nstamps, sizeof(*sorted), by_stamp);
	for (size_t i = 0; i < nstamps; i++) {
		const struct nps_timing *t = sorted[i], *last = i ? sorted[i - 1] : NULL;
		struct nps_timing edge = { .kind = NPS_TIMING_BETWEEN, .to = t->to };

		if (last && last->proc == t->proc && last->device == t->device) {
			edge.from = last->to;
			edge.ns = (double)(t->at - last->at);
			edge.error = fmax(t->error, last->error);
			err = add_edge(b, &edge, rate);
		} else {
			nps_clock_map__free(&clock.log.clock);
			clock = (struct stamp_clock){ .log = { .proc = t->proc, .device = t->device } };
			err = nps_clock_align__clock(b->model, &clock.log, &clock.khz);
		}
		if (err)
			break;
		align_stamp(b, t, &clock);
	}
	nps_clock_map__free(&clock.log.clock);
	free(sorted);
	return err;
}

static int bounds_prepare(struct bounding *b)
{
	const struct nps_timing *timings = b->model->timings.data;
	const struct nps_key *keys = b->streams->keys;
	size_t n = b->streams->n;
	double rate = rate_error(b->model);
	int err = nps_vec__resize(&b->pins, n);

	if (err)
		return err;
	err = nps_vec__resize(&b->ordinal, b->model->subs.len);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		NPS_AT(&b->pins, struct nps_pin, i) = (struct nps_pin){ 0, UINT64_MAX };
		NPS_AT(&b->ordinal, uint32_t, keys[i].row) = i;
	}
	err = streams_sweep(b);
	for (size_t i = 0; !err && i < b->model->timings.len; i++)
		if (timings[i].kind != NPS_TIMING_AT)
			err = add_edge(b, &timings[i], timings[i].kind == NPS_TIMING_BETWEEN ? rate : 0);
	return err ? err : stamps(b, rate);
}

static int with_timings(struct bounding *b)
{
	int err = bounds_prepare(b);

	if (err)
		return err;
	b->moved = true;
	for (int round = 0; b->moved && round < ROUNDS; round++) {
		err = streams_sweep(b);
		if (err)
			return err;
		b->moved = false;
		apply_all(b);
	}
	if (b->contradict)
		nps_msg("%zu of %zu times of the job's own events contradict the times of its calls: "
			"they are not used",
			b->contradict, b->edges.len);
	return streams_sweep(b);
}

int nps_bounds__all(struct nps_session *model, const struct nps_streams *streams,
		    const struct nps_task *const *tasks, struct nps_bounds *bounds)
{
	struct bounding b = { .model = model, .streams = streams, .tasks = tasks, .bounds = bounds };
	int err;

	nps_vec__init(&b.subs, model->tmpfd, sizeof(const struct nps_sub *));
	nps_vec__init(&b.syncs, model->tmpfd, sizeof(struct nps_sync));
	nps_vec__init(&b.pins, model->tmpfd, sizeof(struct nps_pin));
	nps_vec__init(&b.ordinal, model->tmpfd, sizeof(uint32_t));
	nps_vec__init(&b.edges, model->tmpfd, sizeof(struct nps_timing));
	err = nps_vec__resize(&b.subs, streams->n);
	for (size_t i = 0; !err && i < streams->n; i++)
		NPS_AT(&b.subs, const struct nps_sub *, i) =
			&NPS_AT(&model->subs, struct nps_sub, streams->keys[i].row);
	if (!err && any_open(&b, 0, streams->n))
		err = model->timings.len ? with_timings(&b) : streams_sweep(&b);
	nps_vec__free(&b.subs);
	nps_vec__free(&b.syncs);
	nps_vec__free(&b.pins);
	nps_vec__free(&b.ordinal);
	nps_vec__free(&b.edges);
	return err;
}
