/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiling channel 50, STARS_SOC_LOG: a start and an end record for every task of this process.
 *
 * Events are collected as tasks are retired, put in order of time and numbered every BATCH_NS, and copied to a ring
 * that knows no overflow: a reader that is a whole ring late finds only what was written since.
 */
#include "device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING_BYTES (4u << 20)
#define BATCH_NS 20000000u
#define SPLIT_EVERY 3 /* this often a read ends inside a record */

struct stars_event {
	uint64_t when;
	uint16_t stream, task, sq;
	uint8_t type, func;
};

struct profiler {
	/* under the device's lock */
	bool active;
	bool log_tasks;
	uint64_t opened, next;
	uint8_t count; /* the record's 4-bit sequence number */
	size_t nevents, room;
	struct stars_event *events;
	/* under ring_lock */
	uint32_t write, read; /* offsets in the ring: nothing tells full from empty */
	uint32_t reads;
	bool queued; /* for poll: once until polled */
	char ring[RING_BYTES];
};

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ring_filled = PTHREAD_COND_INITIALIZER;

int prof_drv_get_channels(unsigned int device_id, channel_list_t *channels)
{
	if (!channels || !device_get(device_id))
		return PROF_ERROR;
	memset(channels, 0, sizeof(*channels));
	channels->chip_type = 5;
	channels->channel_num = 1;
	strcpy(channels->channel[0].name, "stars_soc_log_buffer");
	channels->channel[0].type = 1;
	channels->channel[0].id = CHANNEL_STARS_SOC_LOG;
	return PROF_OK;
}

static void add_event(struct device *d, const struct task *t, uint64_t when, int func, uint32_t sq)
{
	struct profiler *p = d->profiler;

	if (!p->log_tasks || when < p->opened)
		return;
	if (p->nevents == p->room) {
		size_t room = p->room ? p->room * 2 : 4096;
		struct stars_event *more = realloc(p->events, room * sizeof(*more));

		if (!more)
			return; /* the hardware would lose it too; the numbering shows nothing then */
		p->events = more;
		p->room = room;
	}
	p->events[p->nevents++] = (struct stars_event){
		.when = when,
		.stream = t->facts.stream,
		.task = t->facts.task,
		.type = t->facts.type,
		.func = (uint8_t)func,
		.sq = (uint16_t)sq,
	};
}

void prof_task_ended(struct device *d, const struct sq *q, const struct task *t)
{
	if (!d->profiler || !d->profiler->active)
		return;
	if (!t->start_logged)
		add_event(d, t, t->facts.start, STARS_FUNC_START, q->id);
	add_event(d, t, t->facts.end, STARS_FUNC_END, q->id);
}

/* A task that runs now has its start in the log before its end is known. */
static void log_running(struct device *d, uint64_t now)
{
	for (int i = 0; i < d->nsqs; i++) {
		struct sq *q = d->sqs[i];
		struct task *t = &q->ring[q->done % SQ_DEPTH];

		if (q->done == q->submitted || !t->facts.start || t->facts.start > now || t->start_logged)
			continue;
		add_event(d, t, t->facts.start, STARS_FUNC_START, q->id);
		t->start_logged = true;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct stars_event *x = a, *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return 0;
}

static void put_record(struct device *d, struct profiler *p, const struct stars_event *e)
{
	struct stars_record r = {
		.header = (uint16_t)(e->func | (p->count++ & 0xf) << 6 | e->type << 10),
		.magic = STARS_MAGIC,
		.stream = e->stream,
		.task = e->task,
		.syscnt = board_counter(&d->board, e->when),
		.engine = (uint16_t)((e->sq & 0x3ff) << 6),
	};

	memcpy(p->ring + p->write, &r, sizeof(r));
	p->write = (p->write + (uint32_t)sizeof(r)) % RING_BYTES;
}

static void deliver_now(struct device *d, uint64_t now)
{
	struct profiler *p = d->profiler;

	log_running(d, now);
	if (p->nevents == 0)
		return;
	qsort(p->events, p->nevents, sizeof(*p->events), by_time);
	pthread_mutex_lock(&ring_lock);
	for (size_t i = 0; i < p->nevents; i++)
		put_record(d, p, &p->events[i]);
	p->nevents = 0;
	p->queued = true;
	pthread_cond_broadcast(&ring_filled);
	pthread_mutex_unlock(&ring_lock);
}

uint64_t prof_deliver(struct device *d, uint64_t now)
{
	struct profiler *p = d->profiler;

	if (!p || !p->active)
		return 0;
	if (now >= p->next) {
		deliver_now(d, now);
		p->next = now + BATCH_NS;
	}
	return p->next;
}

static bool wants_tasks(const struct prof_start_para *para)
{
	uint32_t acsq_task;

	if (!para->user_data || para->user_data_size < sizeof(acsq_task))
		return false;
	memcpy(&acsq_task, para->user_data, sizeof(acsq_task));
	return acsq_task == 1;
}

static int start(struct device *d, const struct prof_start_para *para)
{
	struct profiler *p = d->profiler;

	if (p && p->active)
		return PROF_STARTED_ALREADY;
	if (!p)
		p = d->profiler = calloc(1, sizeof(*p));
	if (!p)
		return PROF_ERROR;
	if (!board_claim_channel(&d->board, CHANNEL_STARS_SOC_LOG))
		return PROF_NOT_ENOUGH_SUB_CHANNEL_RESOURCE;
	p->active = true;
	p->log_tasks = wants_tasks(para);
	p->opened = truth_now();
	p->next = p->opened + BATCH_NS;
	p->nevents = 0;
	pthread_mutex_lock(&ring_lock);
	p->write = p->read = 0;
	p->queued = false;
	pthread_mutex_unlock(&ring_lock);
	return PROF_OK;
}

int prof_drv_start(unsigned int device_id, unsigned int channel_id, struct prof_start_para *para)
{
	struct device *d;
	int err;

	if (!para || channel_id != CHANNEL_STARS_SOC_LOG || !device_get(device_id))
		return PROF_ERROR;
	d = device_opened(device_id);
	if (!d)
		return PROF_TS_NO_CONTEXT;
	pthread_mutex_lock(&d->lock);
	sched_retire(d, truth_now());
	err = start(d, para);
	pthread_mutex_unlock(&d->lock);
	if (!err)
		board_ring(&d->board, d->board.slot);
	return err;
}

/* NULL unless the channel runs in this process; else with the device locked. */
static struct profiler *lock_channel(unsigned int device_id, unsigned int channel_id)
{
	struct device *d = device_opened(device_id);

	if (!d || channel_id != CHANNEL_STARS_SOC_LOG)
		return NULL;
	pthread_mutex_lock(&d->lock);
	if (d->profiler && d->profiler->active)
		return d->profiler;
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int prof_stop(unsigned int device_id, unsigned int channel_id)
{
	struct profiler *p = lock_channel(device_id, channel_id);
	struct device *d = device_opened(device_id);

	if (!p)
		return PROF_STOPPED_ALREADY;
	p->active = false;
	board_release_channel(&d->board, channel_id);
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_lock(&ring_lock);
	p->queued = false;
	pthread_cond_broadcast(&ring_filled);
	pthread_mutex_unlock(&ring_lock);
	return PROF_OK;
}

static uint32_t available(const struct profiler *p)
{
	return (p->write - p->read) % RING_BYTES;
}

static uint32_t copy_out(struct profiler *p, char *buf, uint32_t n)
{
	uint32_t first = RING_BYTES - p->read;

	if (first > n)
		first = n;
	memcpy(buf, p->ring + p->read, first);
	memcpy(buf + first, p->ring, n - first);
	p->read = (p->read + n) % RING_BYTES;
	return n;
}

int prof_channel_read(unsigned int device_id, unsigned int channel_id, char *buf, unsigned int size)
{
	struct profiler *p = lock_channel(device_id, channel_id);
	uint32_t n;

	if (!p)
		return PROF_STOPPED_ALREADY;
	pthread_mutex_unlock(&device_opened(device_id)->lock);
	if (!buf)
		return PROF_ERROR;
	pthread_mutex_lock(&ring_lock);
	n = available(p);
	if (n > size)
		n = size;
	if (n > sizeof(struct stars_record) && ++p->reads % SPLIT_EVERY == 0)
		n -= 1 + p->reads * 7 % 63;
	copy_out(p, buf, n);
	pthread_mutex_unlock(&ring_lock);
	return (int)n;
}

/* Moves queued channels to `out`; -1 if no channel runs at all. With the ring locked. */
static int take_queued(struct prof_poll_info *out, int num)
{
	int n = 0;
	bool any = false;

	for (uint32_t i = 0; i < DEVICES_MAX; i++) {
		struct device *d = device_opened(i);
		struct profiler *p = d ? d->profiler : NULL;

		if (!p || !p->active)
			continue;
		any = true;
		if (p->queued && n < num) {
			p->queued = false;
			out[n].device_id = i;
			out[n++].channel_id = CHANNEL_STARS_SOC_LOG;
		}
	}
	return any ? n : -1;
}

int prof_channel_poll(struct prof_poll_info *out, int num, int timeout)
{
	struct timespec until;
	int n;

	if (!out || num <= 0)
		return PROF_ERROR;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout <= 0 || timeout > 5 ? 5 : timeout;
	pthread_mutex_lock(&ring_lock);
	for (;;) {
		n = take_queued(out, num);
		if (n || pthread_cond_timedwait(&ring_filled, &ring_lock, &until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&ring_lock);
	return n < 0 ? PROF_STOPPED_ALREADY : n;
}

int halProfDataFlush(unsigned int device_id, unsigned int channel_id, unsigned int *data_len)
{
	struct profiler *p = lock_channel(device_id, channel_id);
	struct device *d = device_opened(device_id);
	uint64_t now = truth_now();

	if (!p)
		return PROF_STOPPED_ALREADY;
	sched_retire(d, now);
	deliver_now(d, now);
	pthread_mutex_unlock(&d->lock);
	return halProfQueryAvailBufLen(device_id, channel_id, data_len);
}

int halProfQueryAvailBufLen(unsigned int device_id, unsigned int channel_id, unsigned int *len)
{
	struct profiler *p = lock_channel(device_id, channel_id);

	if (!p)
		return PROF_STOPPED_ALREADY;
	pthread_mutex_unlock(&device_opened(device_id)->lock);
	pthread_mutex_lock(&ring_lock);
	if (len)
		*len = available(p);
	pthread_mutex_unlock(&ring_lock);
	return PROF_OK;
}
