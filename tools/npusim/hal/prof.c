/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's profiling API.  Events of tasks are collected as tasks are retired, put in order of time
 * every BATCH_NS and written to the channels that want them; channels that sample are served by the
 * sampler's thread.
 */
#include "control.h"
#include "prof.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_NS 20000000u
#define PERIOD_MIN_MS 10
#define PERIOD_MAX_MS 10000

int prof_drv_get_channels(unsigned int device_id, channel_list_t *channels)
{
	int err = control_call(device_id, CONTROL_ANY, CALL_CHANNELS);
	const struct chip_channel *c = NULL;
	const struct chip *chip;
	struct device *d;

	if (err)
		return err;
	d = channels ? device_get(device_id) : NULL;
	if (!d)
		return PROF_ERROR;
	chip = board_chip(&d->board);
	memset(channels, 0, sizeof(*channels));
	channels->chip_type = chip->platform;
	while ((c = chip_next_channel(chip, c))) {
		channel_info_t *info = &channels->channel[channels->channel_num];

		if (!channel_kind(c->id))
			continue;
		strcpy(info->name, c->name);
		info->type = c->application;
		info->id = c->id;
		channels->channel_num++;
	}
	return PROF_OK;
}

/* The hardware would lose it too if there is no room; the numbers show nothing then. */
static void add_event(struct device *d, const struct sq *q, const struct task *t, int what, uint64_t when)
{
	if (d->batched == d->batch_room) {
		size_t room = d->batch_room ? d->batch_room * 2 : 4096;
		struct prof_event *more = realloc(d->batch, room * sizeof(*more));

		if (!more)
			return;
		d->batch = more;
		d->batch_room = room;
	}
	d->batch[d->batched++] =
		(struct prof_event){ .when = when, .what = what, .sq = (uint16_t)q->id, .task = *t };
}

static void add_sub_tasks(struct device *d, const struct sq *q, const struct task *t, int what)
{
	const struct ffts *f = task_ffts(d, t);

	for (uint32_t k = 0; f && k < f->contexts * f->threads; k++) {
		size_t before = d->batched;

		add_event(d, q, t, what, what == EVENT_SUB_START ? ffts_start(f, t, k) : ffts_end(f, t, k));
		if (d->batched == before)
			return;
		d->batch[before].context = (uint16_t)(k / f->threads);
		d->batch[before].thread = (uint16_t)(k % f->threads);
		if (what == EVENT_SUB_END)
			truth_line("sub", "%u\t%u\t%u\t%u\t%u\t%u\t%llu\t%llu", t->facts.device,
				   t->facts.stream, t->facts.task, t->facts.flip, k / f->threads,
				   k % f->threads, (unsigned long long)ffts_start(f, t, k),
				   (unsigned long long)ffts_end(f, t, k));
	}
}

static void add_start(struct device *d, const struct sq *q, const struct task *t)
{
	if (board_chip(&d->board)->log == CHIP_HWTS)
		add_event(d, q, t, EVENT_RECEIVED, t->facts.submit);
	add_event(d, q, t, EVENT_START, t->facts.start);
	add_sub_tasks(d, q, t, EVENT_SUB_START);
}

void prof_task_ended(struct device *d, const struct sq *q, const struct task *t)
{
	if (!d->task_channels)
		return;
	if (!t->start_logged)
		add_start(d, q, t);
	add_sub_tasks(d, q, t, EVENT_SUB_END);
	add_event(d, q, t, EVENT_END, t->facts.end);
}

/* A task that runs now has its start in the log before its end is known. */
static void log_running(struct device *d, uint64_t now)
{
	for (int i = 0; i < d->nsqs; i++) {
		struct sq *q = d->sqs[i];
		struct task *t = &q->ring[q->done % SQ_DEPTH];

		if (q->done == q->submitted || !t->facts.start || t->facts.start > now || t->start_logged)
			continue;
		add_start(d, q, t);
		t->start_logged = true;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct prof_event *x = a, *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return 0;
}

static void deliver_now(struct device *d, uint64_t now)
{
	log_running(d, now);
	qsort(d->batch, d->batched, sizeof(*d->batch), by_time);
	for (uint32_t id = 0; id < PROF_CHANNELS; id++) {
		struct channel *c = d->channels[id];

		if (!c || !c->active || !c->collects_tasks)
			continue;
		for (size_t i = 0; i < d->batched; i++) {
			if (d->batch[i].when >= c->opened)
				c->kind->task(c, &d->batch[i]);
		}
		channel_batch_done(c);
	}
	d->batched = 0;
}

uint64_t prof_deliver(struct device *d, uint64_t now)
{
	prof_check_reset(d);
	if (!d->task_channels)
		return 0;
	if (now >= d->next_batch) {
		deliver_now(d, now);
		d->next_batch = now + BATCH_NS;
	}
	return d->next_batch;
}

static void truth_channel(const struct channel *c, const char *what)
{
	truth_line("channel", "%u\t%u\t%s\t%llu", c->device->id, c->id, what,
		   (unsigned long long)truth_now());
}

/* With the device locked. */
static void end_channel(struct channel *c, const char *how)
{
	c->active = false;
	c->device->task_channels -= c->collects_tasks;
	if (c->collects_samples)
		samples_truth(c);
	free(c->state);
	c->state = NULL;
	channel_dequeue(c);
	truth_channel(c, how);
	truth_flush();
}

/* The first process that sees the order resets the board; every process then has no channels and queues. */
void prof_check_reset(struct device *d)
{
	if (board_follow_reset(&d->board, control_resets(d->id)) == d->resets)
		return;
	d->resets = atomic_load(&d->board.shared->resets);
	truth_line("reset", "%u\t%llu", d->id, (unsigned long long)atomic_load(&d->board.shared->reset_at));
	clock_truth_after_reset(&d->board, d->id);
	for (uint32_t id = 0; id < PROF_CHANNELS; id++) {
		if (d->channels[id] && d->channels[id]->active)
			end_channel(d->channels[id], "reset");
	}
	device_lost(d);
}

static struct channel *new_channel(struct device *d, const struct channel_kind *kind)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->device = d;
	c->id = kind->id;
	c->kind = kind;
	d->channels[c->id] = c;
	return c;
}

static bool valid_start(const struct channel_kind *kind, const struct prof_start_para *p)
{
	bool period_needed = p->channel_type == PROF_PERIPHERAL_TYPE;

	if (p->channel_type != kind->type || p->user_data_size > CONFIG_MAX ||
	    p->user_data_size < kind->config_min || (p->user_data_size && !p->user_data))
		return false;
	if (p->sample_period == 0)
		return !period_needed;
	return p->sample_period >= PERIOD_MIN_MS && p->sample_period <= PERIOD_MAX_MS;
}

/* With the device locked. */
static int start(struct device *d, const struct channel_kind *kind, const struct prof_start_para *para)
{
	struct channel *c = d->channels[kind->id] ? d->channels[kind->id] : new_channel(d, kind);

	if (!c)
		return PROF_ERROR;
	if (c->active)
		return PROF_STARTED_ALREADY;
	memset(c->config, 0, sizeof(c->config));
	c->config_bytes = para->user_data_size;
	if (para->user_data_size)
		memcpy(c->config, para->user_data, para->user_data_size);
	c->collects_tasks = kind->in_context(c);
	c->collects_samples = !c->collects_tasks;
	c->period_ms = para->sample_period ? para->sample_period : PERIOD_MIN_MS;
	if (c->collects_tasks && !device_opened(d->id))
		return PROF_TS_NO_CONTEXT;
	if (!board_claim_channel(&d->board, kind->id))
		return PROF_NOT_ENOUGH_SUB_CHANNEL_RESOURCE;
	if (!channel_ring_start(c)) {
		board_release_channel(&d->board, kind->id);
		return PROF_ERROR;
	}
	device_truth(d);
	c->opened = truth_now();
	c->since_loss = c->lose_run = 0;
	c->record = 64;
	c->last = c->next = 0;
	if (c->collects_tasks && !d->task_channels++) {
		d->batched = 0;
		d->next_batch = c->opened + BATCH_NS;
	}
	c->active = true;
	truth_channel(c, "start");
	return PROF_OK;
}

int prof_drv_start(unsigned int device_id, unsigned int channel_id, struct prof_start_para *para)
{
	const struct channel_kind *kind = channel_kind(channel_id);
	int err = control_call(device_id, channel_id, CALL_START);
	struct device *d;

	if (err)
		return err;
	d = para && kind ? device_get(device_id) : NULL;
	if (!d || !chip_channel(board_chip(&d->board), channel_id) || !valid_start(kind, para))
		return PROF_ERROR;
	pthread_mutex_lock(&d->lock);
	prof_check_reset(d);
	sched_retire(d, truth_now());
	err = start(d, kind, para);
	pthread_mutex_unlock(&d->lock);
	if (err)
		return err;
	board_ring(&d->board, d->board.slot);
	if (kind->sample && !sampler_wake()) {
		prof_stop(device_id, channel_id);
		return PROF_ERROR;
	}
	return PROF_OK;
}

/* NULL unless the channel runs in this process; else with the device locked. */
static struct channel *lock_channel(unsigned int device_id, unsigned int channel_id)
{
	struct device *d = channel_id < PROF_CHANNELS ? device_known(device_id) : NULL;

	if (!d)
		return NULL;
	pthread_mutex_lock(&d->lock);
	prof_check_reset(d);
	if (d->channels[channel_id] && d->channels[channel_id]->active)
		return d->channels[channel_id];
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int prof_stop(unsigned int device_id, unsigned int channel_id)
{
	int err = control_call(device_id, channel_id, CALL_STOP);
	struct channel *c;

	if (err)
		return err;
	c = lock_channel(device_id, channel_id);
	if (!c)
		return PROF_STOPPED_ALREADY;
	end_channel(c, "stop");
	board_release_channel(&c->device->board, channel_id);
	pthread_mutex_unlock(&c->device->lock);
	return PROF_OK;
}

int prof_channel_read(unsigned int device_id, unsigned int channel_id, char *buf, unsigned int size)
{
	int err = control_call(device_id, channel_id, CALL_READ);
	struct channel *c;

	if (err)
		return err;
	c = lock_channel(device_id, channel_id);
	if (!c)
		return PROF_STOPPED_ALREADY;
	pthread_mutex_unlock(&c->device->lock);
	return buf ? (int)channel_read(c, buf, size) : PROF_ERROR;
}

int prof_channel_poll(struct prof_poll_info *out, int num, int timeout)
{
	int err = control_call(CONTROL_ANY, CONTROL_ANY, CALL_POLL), n;

	if (err)
		return err;
	if (!out || num <= 0)
		return PROF_ERROR;
	n = channel_poll(out, num, timeout <= 0 || timeout > 5 ? 5 : timeout);
	return n < 0 ? PROF_STOPPED_ALREADY : n;
}

/* The device pushes what it holds. */
static void flush(struct channel *c, uint64_t now)
{
	if (c->collects_tasks) {
		sched_retire(c->device, now);
		deliver_now(c->device, now);
	} else if (now > c->last) {
		c->kind->sample(c, now);
		channel_batch_done(c);
	}
}

int halProfDataFlush(unsigned int device_id, unsigned int channel_id, unsigned int *data_len)
{
	int err = control_call(device_id, channel_id, CALL_FLUSH);
	struct channel *c;

	if (err)
		return err;
	c = lock_channel(device_id, channel_id);
	if (!c)
		return PROF_STOPPED_ALREADY;
	flush(c, truth_now());
	pthread_mutex_unlock(&c->device->lock);
	return halProfQueryAvailBufLen(device_id, channel_id, data_len);
}

int halProfQueryAvailBufLen(unsigned int device_id, unsigned int channel_id, unsigned int *len)
{
	struct channel *c = lock_channel(device_id, channel_id);

	if (!c)
		return PROF_STOPPED_ALREADY;
	pthread_mutex_unlock(&c->device->lock);
	if (len)
		*len = channel_available(c);
	return PROF_OK;
}
