/* SPDX-License-Identifier: BSD-2-Clause */
#include "sources/tasklog/task_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/agent_client.h"
#include "capture/capture.h"
#include "capture/channel_files.h"
#include "capture/discover.h"
#include "core/clocks.h"
#include "core/log.h"
#include "driver/device_info.h"
#include "driver/driver_query.h"
#include "session.h"
#include "sources/device/device_sampler.h"
#include "sources/tasklog/profiler_tap.h"
#include "sources/tasklog/refusals.h"
#include "sources/tasklog/tap_claims.h"

#define CLOCK_SAMPLES 8
#define LAST_DRAINS 512 /* of a ring that is full of the smallest records */
#define CLOCKS_A_TICK 64 /* devices, for all processes together */
#define MODULE_SYSTEM 0
#define INFO_SYS_COUNT 13
#define FFTS_PROFILE_TASK 53
/* Time in which a profiler that listed channels, or was refused one, starts them. */
#define LEASE_NS 3000000000ULL
#define STARTED (-3) /* codes of the driver: this process has the channel open */
#define OCCUPIED (-10) /* another process has it */
#define OCCUPIED_VF (-11)

/* A device whose log a job's own profiler reads. */
struct tapped {
	uint32_t pid, device;
	bool queried; /* the driver was queried about it */
	bool querying; /* that query has not been answered */
	bool has_info;
	uint32_t host; /* its number there; set with the info */
	struct nps_device_info info;
	uint16_t events[2][NPS_AIC_EVENTS]; /* for AI cores and vector cores */
	uint32_t n_events[2];
	bool read;
};

struct nps_task_source {
	struct nps_capture *c;
	struct nps_profiler_tap *tap;
	struct nps_tap_claims claims;
	bool reported; /* that the driver's library is missing */
	struct tapped *tapped;
	size_t n_tapped, ticked;
	bool flooded; /* more arrived than one turn handles */
	/* CLOCK_MONOTONIC ns until which nothing is sampled, because a profiler is about to start */
	uint64_t lease[NPS_DEVICE_MAX];
	uint64_t dropped; /* bytes beyond the limit of their process's account */
	bool waits; /* for the sampler to release a device */
	uint64_t let_go; /* bit d: device d was released, which was reported */
	struct nps_refusals refusals;
	uint64_t refused_reported; /* bit d */
};

int nps_task_source__open(struct nps_capture *c, struct nps_task_source **out)
{
	enum nps_task_source_kind kind = c->opts->task_source;
	struct nps_task_source *t;
	int err;

	*out = NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->c = c;
	err = nps_profiler_tap__open(c->shared.kernel, kind != NPS_TASKS_AGENT && kind != NPS_TASKS_HOST,
				     &t->tap);
	if (err) {
		nps_warn("cannot watch for the job's own profiler: %s: while it runs, only it reads the "
			 "task log",
			 err == -ENOTSUP ? "this kernel lacks BTF or ring buffers" : strerror(-err));
		c->degraded |= kind == NPS_TASKS_PROFILER;
		free(t);
		return err == -ENOMEM ? err : 0;
	}
	*out = t;
	return 0;
}

void nps_task_source__free(struct nps_task_source *t)
{
	if (!t)
		return;
	nps_profiler_tap__close(t->tap);
	nps_tap_claims__free(&t->claims);
	free(t->tapped);
	nps_refusals__free(&t->refusals);
	free(t);
}

void nps_task_source__library(struct nps_task_source *t, int fd, const char *path, struct nps_budget *budget)
{
	int err = t ? nps_profiler_tap__attach(t->tap, fd, path, budget) : 0;

	if (!err || err == -ENOENT || err == -ETIME)
		return;
	nps_warn("cannot probe the profiling functions of %s: %s: what the job's own profiler reads is not "
		 "recorded",
		 path, strerror(-err));
	t->c->degraded = true;
}

static struct tapped *tapped_find(struct nps_task_source *t, uint32_t pid, uint32_t device)
{
	for (size_t i = 0; i < t->n_tapped; i++)
		if (t->tapped[i].pid == pid && t->tapped[i].device == device)
			return &t->tapped[i];
	return NULL;
}

static struct tapped *tapped_of(struct nps_task_source *t, uint32_t pid, uint32_t device)
{
	struct tapped *found = tapped_find(t, pid, device), *more;

	if (found)
		return found;
	if (device >= NPS_DEVICE_MAX)
		return NULL;
	more = realloc(t->tapped, (t->n_tapped + 1) * sizeof(*more));
	if (!more)
		return NULL;
	t->tapped = more;
	t->tapped[t->n_tapped] = (struct tapped){ .pid = pid, .device = device };
	return &t->tapped[t->n_tapped++];
}

/* Query: reads of a device's counter, and facts about it. */
struct clock_reading {
	struct nps_question q;
	pid_t pid;
	uint32_t device, host, n; /* numbers of the device: in the job, and for the driver here */
	bool wants_info, foreign, has_lib, is_resolved, has_info;
	struct nps_device_info info;
	struct nps_device_clock clocks[CLOCK_SAMPLES];
	char why[320];
};

/*
 * Finds the driver's number of the device here. A container has numbers of its own; but a process that
 * reads the log of a device has a context on it, and so has memory on it: if it has memory on one device
 * only, it is that one.
 */
static bool reading_resolve_device(struct clock_reading *r, struct nps_driver *driver)
{
	if (nps_device_lib__numbers_for(&driver->lib, r->pid, r->foreign)) {
		r->host = r->device;
		return true;
	}
	nps_driver__open_dcmi(driver, &r->pid, 1);
	return driver->lib.has[NPS_WORKER_DCMI] && nps_driver__only_device(driver, r->pid, &r->host);
}

/* Reads the counter several times, each between two reads of our clock. */
static void reading_query(struct nps_question *q, struct nps_driver *driver)
{
	struct clock_reading *r = (struct clock_reading *)q;

	r->has_lib = nps_driver__open(driver, &r->pid, 1);
	if (!r->has_lib) {
		snprintf(r->why, sizeof(r->why), "%s", driver->why);
		return;
	}
	r->is_resolved = !r->wants_info || reading_resolve_device(r, driver);
	if (!r->is_resolved || (r->wants_info && nps_device_info__read(&driver->lib, r->host, &r->info)))
		return;
	r->info.id = r->device;
	r->has_info = true;
	for (int i = 0; i < CLOCK_SAMPLES; i++) {
		struct nps_device_clock *c = &r->clocks[r->n];
		struct nps_call_span span;
		int64_t counter = 0;

		*c = (struct nps_device_clock){ .device = r->device, .pid = (uint32_t)r->pid };
		if (nps_device_lib__info(&driver->lib, r->host, MODULE_SYSTEM, INFO_SYS_COUNT, &counter,
					 &span))
			continue;
		c->raw_before = span.before;
		c->raw_after = span.after;
		c->counter = (uint64_t)counter;
		r->n++;
	}
}

static void reading_answer(struct nps_question *q, void *ctx)
{
	const struct clock_reading *r = (const struct clock_reading *)q;
	struct nps_task_source *t = ctx;
	struct tapped *d = tapped_find(t, (uint32_t)r->pid, r->device);
	const struct nps_process *p = nps_discover__find(t->c, r->pid);

	if (!d)
		return;
	d->querying = false;
	if (!r->has_lib && !t->reported)
		nps_warn("clocks of devices cannot be read: %s: tasks that the job's own profiler "
			 "reads "
			 "have bounds where no helper reads them",
			 r->why);
	t->reported |= !r->has_lib;
	if (r->has_lib && !r->is_resolved)
		nps_info(
			"pid %d: the clock of its device %u cannot be read from outside its container, where "
			"devices have other numbers, since DCMI does not show that it has memory on one "
			"only: tasks that its own profiler reads have bounds unless its helper reads it",
			r->pid, r->device);
	if (!r->has_info || !p || !p->files)
		return;
	if (r->wants_info) {
		d->info = r->info;
		d->host = r->host;
		d->has_info = true;
		nps_device_info__complain(&d->info);
		nps_channel_files__know(p->files, &d->info);
	}
	for (uint32_t i = 0; i < r->n; i++)
		nps_channel_files__clock(p->files, &r->clocks[i]);
	if (r->n)
		nps_stream__append(&t->c->session.clocks, NPS_CHUNK_DEVICE_CLOCKS, 0, r->clocks,
				   r->n * sizeof(r->clocks[0]));
}

static void tapped_read_clock(struct nps_task_source *t, struct tapped *d, const struct nps_process *p)
{
	struct clock_reading *r = d->querying ? NULL : calloc(1, sizeof(*r));

	if (!r)
		return;
	r->q = (struct nps_question){ .ctx = t, .query = reading_query, .answer = reading_answer };
	r->pid = (pid_t)d->pid;
	r->device = d->device;
	r->host = d->host;
	r->foreign = nps_process__foreign(p);
	r->wants_info = !d->has_info;
	d->querying = true;
	nps_driver_query__post(t->c->shared.query, &r->q);
}

/* Registers a device whose clock has to be known. */
static void tapped_note_read(struct nps_task_source *t, struct tapped *d, const struct nps_process *p)
{
	d->read = true;
	if (d->queried)
		return;
	d->queried = true;
	tapped_read_clock(t, d, p);
}

void nps_task_source__tick(struct nps_task_source *t)
{
	size_t n = t ? t->n_tapped : 0, most = n < CLOCKS_A_TICK ? n : CLOCKS_A_TICK;

	/* Other sources query the driver, too, so with many devices only some are queried at a time. */
	for (size_t k = 0; k < most; k++) {
		size_t i = t->ticked++ % n;
		const struct nps_process *p = nps_discover__find(t->c, (pid_t)t->tapped[i].pid);

		/* A helper reads it inside the job, in a thread of its own. */
		if (p && p->agent && nps_agent_client__uses(p->agent, t->tapped[i].device))
			continue;
		if (p && p->alive && p->files && t->tapped[i].has_info)
			tapped_read_clock(t, &t->tapped[i], p);
	}
}

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Events that the job's profiler has programmed (cann-abi 4.1: parameters of channel 53). */
static void note_events(struct tapped *d, const uint8_t *para, uint32_t len)
{
	size_t most = d->has_info && nps_generation_of(d->info.platform) == NPS_GENERATION_V6 ? 10 : 8;
	size_t core = 16 + 2 * most;

	for (size_t k = 0; k < 2 && 4 + (k + 1) * core <= len; k++) {
		const uint8_t *at = para + 4 + k * core;

		d->n_events[k] = u32_at(at + 12) <= most ? u32_at(at + 12) : 0;
		memcpy(d->events[k], at + 16, d->n_events[k] * sizeof(uint16_t));
	}
}

static void on_enter(struct nps_task_source *t, const struct nps_tap_event *e, const void *data)
{
	struct tapped *d = e->channel == FFTS_PROFILE_TASK ? tapped_of(t, e->pid, e->device) : NULL;

	nps_tap_claims__enter(&t->claims, e->pid, e->tid, e->device, e->channel);
	if (d)
		note_events(d, data, e->len);
}

static void on_data(struct nps_task_source *t, const struct nps_tap_event *e, const void *data)
{
	const struct nps_channel_at at = { .device = e->device,
					   .channel = e->channel,
					   .reader = NPS_READ_BY_PROFILER,
					   .epoch = e->epoch,
					   .position = e->position };
	struct nps_process *p = nps_discover__find(t->c, (pid_t)e->pid);
	struct tapped *d;
	int err;

	if (p && p->alive)
		nps_tap_claims__read(&t->claims, e->pid, e->device, e->channel);
	if (!p || !p->files)
		return;
	p->tapped += e->len;
	err = nps_channel_files__put(p->files, &at, data, e->len);
	if (err == -ENOBUFS)
		t->dropped += e->len;
	else if (err && err != -EPROTO)
		atomic_store(&t->c->session.clocks.error, err);
	d = err ? NULL : tapped_of(t, e->pid, e->device);
	if (d)
		tapped_note_read(t, d, p);
}

/* A process in a container may refer to any device. */
static void lease(struct nps_task_source *t, const struct nps_tap_event *e)
{
	const struct nps_process *p = nps_discover__find(t->c, (pid_t)e->pid);
	uint64_t until = nps_now(CLOCK_MONOTONIC) + LEASE_NS;

	for (uint32_t d = 0; p && d < NPS_DEVICE_MAX; d++)
		if (d == e->device || nps_process__foreign(p))
			t->lease[d] = until;
}

static bool event_has_helper(const struct nps_task_source *t, const struct nps_tap_event *e)
{
	const struct nps_process *p = nps_discover__find(t->c, (pid_t)e->pid);

	return p && p->agent && nps_agent_client__uses(p->agent, e->device);
}

/* NULL: unknown. */
static const struct nps_log_owner *owner_of(const struct nps_process *p)
{
	return p->files ? nps_channel_files__account(p->files)->owner : NULL;
}

/*
 * A thread that blocks signals cannot be made to wait until a helper has released the device: keep it free
 * for a while, so that the thread can try again.
 */
static void on_refusal(struct nps_task_source *t, const struct nps_tap_event *e)
{
	if (e->device >= NPS_DEVICE_MAX || !event_has_helper(t, e))
		return;
	nps_refusals__add(&t->refusals, owner_of(nps_discover__find(t->c, (pid_t)e->pid)), e->device,
			  nps_now(CLOCK_MONOTONIC) + LEASE_NS);
	if (!(t->refused_reported >> e->device & 1))
		nps_info("device %u: the job's own profiler was refused channel %u (code %d), which npuscope "
			 "had: it "
			 "is free now, and the profiler has to try again",
			 e->device, e->channel, e->ret);
	t->refused_reported |= 1ULL << e->device;
}

static void on_event(void *ctx, const struct nps_tap_event *e, const void *data)
{
	struct nps_task_source *t = ctx;
	const struct nps_process *p = nps_discover__find(t->c, (pid_t)e->pid);

	if (e->device >= NPS_DEVICE_MAX || e->channel >= NPS_PROF_CHANNELS)
		/*
		 * the driver has no such device or channel: calls with arbitrary numbers are not remembered
		 */
		return;
	/* For a process that has exited its data is handled, but it does not claim anything. */
	if (e->what != NPS_TAP_DATA && (!p || !p->alive))
		return;
	switch ((enum nps_tap_what)e->what) {
	case NPS_TAP_ENTER:
		on_enter(t, e, data);
		break;
	case NPS_TAP_START:
		nps_tap_claims__started(&t->claims, e->pid, e->tid, e->device, e->channel, e->ret == 0);
		if (e->ret == OCCUPIED || e->ret == OCCUPIED_VF)
			lease(t, e);
		if (e->ret == STARTED || e->ret == OCCUPIED || e->ret == OCCUPIED_VF)
			on_refusal(t, e);
		break;
	case NPS_TAP_LIST:
		lease(t, e);
		break;
	case NPS_TAP_STOP:
		nps_tap_claims__stopped(&t->claims, e->pid, e->device, e->channel, e->ret == 0);
		break;
	case NPS_TAP_EMPTY:
		nps_tap_claims__read(&t->claims, e->pid, e->device, e->channel);
		break;
	case NPS_TAP_DATA:
		on_data(t, e, data);
		break;
	}
}

/*
 * The helper may open the device again when the reason is over; see
 * nps_agent_client__come_back() for the order of checks.
 */
static void settle_agent(struct nps_task_source *t, struct nps_process *p, const uint32_t *holds)
{
	struct nps_tap_helper helper = { 0 };

	if (!p->signalled && nps_agent_client__signal(p->agent, &helper)) {
		nps_profiler_tap__helper(t->tap, p->pid, &helper);
		p->signalled = true;
	}
	for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++) {
		if (nps_tap_claims__any(&t->claims, (uint32_t)p->pid, d) ||
		    nps_refusals__hold(&t->refusals, owner_of(p), d, nps_now(CLOCK_MONOTONIC)))
			nps_agent_client__let_go(p->agent, d);
		else if (holds[d])
			nps_agent_client__come_back(p->agent, d, holds[d]);
	}
}

static void report_release(struct nps_task_source *t, uint32_t device)
{
	if (!(t->let_go >> device & 1))
		nps_info("device %u: the job's own profiler runs: its channels are not sampled until it has "
			 "ended",
			 device);
	t->let_go |= 1ULL << device;
}

/*
 * Has a profiler a channel of the device open, or is it about to? One in a container, which has its own
 * numbers, may refer to any device.
 */
static bool is_claimed(const struct nps_task_source *t, uint32_t device)
{
	if (nps_tap_claims__any(&t->claims, 0, device))
		return true;
	for (const struct nps_process *p = t->claims.n ? t->c->processes : NULL; p; p = p->next)
		if (nps_process__foreign(p) && nps_tap_claims__any_device(&t->claims, (uint32_t)p->pid))
			return true;
	return nps_now(CLOCK_MONOTONIC) < t->lease[device];
}

/*
 * Sampling from outside is off while a profiler has a channel of the device open. Threads of the job that
 * start a channel wait in the helper's handler while `sampled` is set. Before sampling begins again,
 * another check makes sure that no thread has come meanwhile.
 */
static void settle_device(struct nps_task_source *t, uint32_t d, uint32_t (*holds)[NPS_DEVICE_MAX])
{
	struct nps_device_sampler *s = t->c->shared.devices;
	bool claimed = is_claimed(t, d), released;
	size_t i = 0;

	if (claimed) {
		report_release(t, d);
		nps_device_sampler__release(s, d);
	}
	released = claimed && nps_device_sampler__released(s, d);
	t->waits |= claimed && !released;
	for (struct nps_process *p = t->c->processes; p; p = p->next) {
		if (!p->agent)
			continue;
		if (!nps_agent_client__sampled(p->agent, d, p->alive && !released, holds[i++][d]))
			claimed = true;
	}
	if (!claimed)
		nps_device_sampler__resume(s, d);
}

static void settle_sampler(struct nps_task_source *t, uint32_t (*holds)[NPS_DEVICE_MAX])
{
	t->waits = false;
	for (uint32_t d = 0; holds && d < NPS_DEVICE_MAX; d++)
		if (nps_device_sampler__samples(t->c->shared.devices, d))
			settle_device(t, d, holds);
}

void nps_task_source__turn(struct nps_task_source *t)
{
	uint32_t(*holds)[NPS_DEVICE_MAX];
	size_t n = 0, i = 0;

	if (!t)
		return;
	for (struct nps_process *p = t->c->processes; p; p = p->next)
		n += p->agent != NULL;
	holds = calloc(n + 1, sizeof(*holds));
	for (struct nps_process *p = t->c->processes; p && holds; p = p->next)
		if (p->agent) {
			for (uint32_t d = 0; d < NPS_DEVICE_MAX; d++)
				holds[i][d] = nps_agent_client__hold(p->agent, d);
			i++;
		}
	nps_task_source__drain(t);
	settle_sampler(t, holds);
	i = 0;
	for (struct nps_process *p = t->c->processes; p && holds; p = p->next)
		if (p->agent)
			settle_agent(t, p, holds[i++]);
	free(holds);
}

void nps_task_source__drain(struct nps_task_source *t)
{
	if (t)
		t->flooded = nps_profiler_tap__drain(t->tap, on_event, t) >= NPS_TAP_MOST_RECORDS;
}

int nps_task_source__fd(const struct nps_task_source *t)
{
	return t && !t->flooded ? nps_profiler_tap__fd(t->tap) : -1;
}

bool nps_task_source__waits(const struct nps_task_source *t)
{
	return t && t->waits;
}

void nps_task_source__detach(struct nps_task_source *t)
{
	if (!t)
		return;
	nps_profiler_tap__detach(t->tap);
	for (int i = 0; i < LAST_DRAINS; i++) {
		nps_task_source__drain(t);
		if (!t->flooded)
			return;
	}
}

void nps_task_source__exited(struct nps_task_source *t, const struct nps_process *p)
{
	if (!t)
		return;
	nps_tap_claims__exited(&t->claims, (uint32_t)p->pid);
	nps_profiler_tap__helper(t->tap, p->pid, NULL);
	/* Devices without any data are not described. */
	for (size_t i = t->n_tapped; i-- > 0;)
		if (t->tapped[i].pid == (uint32_t)p->pid && !t->tapped[i].read)
			t->tapped[i] = t->tapped[--t->n_tapped];
}

/* Is the job's number of that device valid for all processes? */
static bool is_everybodys(const struct nps_task_source *t, const struct tapped *d)
{
	const struct nps_process *p = nps_discover__find(t->c, (pid_t)d->pid);

	return p &&
	       nps_device_facts__believes(&t->c->shared.facts, p->uid, d->device, nps_process__foreign(p));
}

void nps_task_source__describe(const struct nps_task_source *t, cJSON *devices)
{
	static const char *const names[] = { "aic_events", "aiv_events" };

	for (size_t i = 0; t && i < t->n_tapped; i++) {
		const struct tapped *d = &t->tapped[i];
		cJSON *j;

		if (!d->has_info || !d->read || !is_everybodys(t, d))
			continue;
		j = nps_device_info__entry(&d->info, devices);
		for (int k = 0; k < 2; k++) {
			bool fresh = d->n_events[k] && !cJSON_HasObjectItem(j, names[k]);
			cJSON *list = fresh ? cJSON_AddArrayToObject(j, names[k]) : NULL;

			for (uint32_t e = 0; list && e < d->n_events[k]; e++)
				cJSON_AddItemToArray(list, cJSON_CreateNumber(d->events[k][e]));
		}
	}
}

uint64_t nps_task_source__lost(const struct nps_task_source *t)
{
	return t ? nps_profiler_tap__lost_bytes(t->tap) + t->dropped : 0;
}

uint64_t nps_task_source__lost_events(const struct nps_task_source *t)
{
	return t ? nps_profiler_tap__lost_events(t->tap) : 0;
}
