/* SPDX-License-Identifier: BSD-2-Clause */
/* A channel's ring without overflow: a reader that is a whole ring late only reads what came since. */
#include "control.h"
#include "prof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING_BYTES (4u << 20)
#define AICPU_RING_BYTES (8u << 20)
#define SPLIT_EVERY 3 /* this often a read ends inside a record */
#define KEEP_AFTER_LOSS                                                                                      \
	24 /* records between two losses: with a run of at most LOSS_RUN the numbers show each */
#define LOSS_RUN 7

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ring_filled = PTHREAD_COND_INITIALIZER;

static uint32_t ring_bytes(const struct channel *c)
{
	return c->id == CHANNEL_AICPU ? AICPU_RING_BYTES : RING_BYTES;
}

void channel_forget(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
	static const pthread_cond_t idle = PTHREAD_COND_INITIALIZER;

	memcpy(&ring_lock, &unlocked, sizeof(unlocked));
	memcpy(&ring_filled, &idle, sizeof(idle));
}

bool channel_ring_start(struct channel *c)
{
	pthread_mutex_lock(&ring_lock);
	if (!c->ring)
		c->ring = malloc(ring_bytes(c));
	c->written = c->read = 0;
	c->queued = false;
	pthread_mutex_unlock(&ring_lock);
	return c->ring;
}

static void truth_lost(const struct channel *c, uint64_t records, uint64_t bytes, const char *how)
{
	truth_line("lost", "%u\t%u\t%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu64, c->device->id, c->id, records,
		   bytes, how, truth_now());
}

/* Never the first records nor long runs: gaps in the 4-bit numbers then add up to what is missing. */
static bool is_lost(struct channel *c, uint32_t size)
{
	if (!c->lose_run && c->since_loss++ >= KEEP_AFTER_LOSS) {
		c->lose_run = (uint32_t)control_consume(ORDER_LOSE, c->device->id, c->id,
							1 + model_random(c->device, LOSS_RUN));
		c->since_loss = 0;
	}
	if (!c->lose_run)
		return false;
	c->lose_run--;
	c->lost_records++;
	c->lost_bytes += size;
	return true;
}

void channel_put(struct channel *c, const void *record, uint32_t size)
{
	uint32_t whole = ring_bytes(c), at, first;

	if (is_lost(c, size))
		return;
	pthread_mutex_lock(&ring_lock);
	c->record = size;
	at = (uint32_t)(c->written % whole);
	first = whole - at < size ? whole - at : size;
	memcpy(c->ring + at, record, first);
	memcpy(c->ring, (const char *)record + first, size - first);
	c->written += size;
	if (c->written - c->read >= whole) {
		/* The reader sees what is between the two offsets in the ring, which is one ring less. */
		c->read += whole;
		truth_lost(c, whole / size, whole, "overrun");
	}
	pthread_mutex_unlock(&ring_lock);
}

void channel_batch_done(struct channel *c)
{
	uint64_t freed;

	pthread_mutex_lock(&ring_lock);
	freed = control_consume(ORDER_OVERWRITE, c->device->id, c->id, c->written - c->read);
	c->read += freed;
	if (c->written != c->read)
		c->queued = true;
	pthread_cond_broadcast(&ring_filled);
	pthread_mutex_unlock(&ring_lock);
	if (freed)
		truth_lost(c, freed / c->record, freed, "overwritten");
	if (c->lost_records)
		truth_lost(c, c->lost_records, c->lost_bytes, "lost");
	c->lost_records = c->lost_bytes = 0;
}

uint32_t channel_available(struct channel *c)
{
	uint32_t n;

	pthread_mutex_lock(&ring_lock);
	n = (uint32_t)(c->written - c->read);
	pthread_mutex_unlock(&ring_lock);
	return n;
}

uint32_t channel_read(struct channel *c, char *buf, uint32_t size)
{
	uint32_t whole = ring_bytes(c), n, at, first;

	pthread_mutex_lock(&ring_lock);
	n = (uint32_t)(c->written - c->read);
	if (n > size)
		n = size;
	if (n > c->record && ++c->reads % SPLIT_EVERY == 0)
		n -= 1 + c->reads * 7 % (c->record - 1);
	at = (uint32_t)(c->read % whole);
	first = whole - at < n ? whole - at : n;
	memcpy(buf, c->ring + at, first);
	memcpy(buf + first, c->ring, n - first);
	c->read += n;
	pthread_mutex_unlock(&ring_lock);
	return n;
}

void channel_dequeue(struct channel *c)
{
	pthread_mutex_lock(&ring_lock);
	c->queued = false;
	pthread_cond_broadcast(&ring_filled);
	pthread_mutex_unlock(&ring_lock);
}

/* Moves queued channels to `out`; -1 if no channel runs at all. With the ring locked. */
static int pop_queued(struct prof_poll_info *out, int num)
{
	bool any = false;
	int n = 0;

	for (uint32_t i = 0; i < DEVICES_MAX; i++) {
		struct device *d = device_known(i);

		for (uint32_t id = 0; d && id < PROF_CHANNELS; id++) {
			struct channel *c = d->channels[id];

			if (!c || !c->active)
				continue;
			any = true;
			if (!c->queued || n == num)
				continue;
			c->queued = false;
			out[n].device_id = i;
			out[n++].channel_id = id;
		}
	}
	return any ? n : -1;
}

int channel_poll(struct prof_poll_info *out, int num, int seconds)
{
	struct timespec until;
	int n;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&ring_lock);
	for (;;) {
		n = pop_queued(out, num);
		if (n || pthread_cond_timedwait(&ring_filled, &ring_lock, &until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&ring_lock);
	return n;
}

uint32_t channel_config(const struct channel *c, uint32_t i)
{
	return i < c->config_bytes / 4 ? c->config[i] : 0;
}

bool channel_on(const struct channel *c, uint32_t i)
{
	return channel_config(c, i) == 1;
}

uint64_t channel_ticks(const struct channel *c, uint64_t raw)
{
	return board_counter(&c->device->board, raw);
}
