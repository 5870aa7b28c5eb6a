/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine thread retires tasks whose end the clock has passed, schedules queues that waited for another
 * device, and feeds the profiler. It ticks at TICK_NS while there is work and sleeps on its doorbell while
 * there is none.
 */
#include "control.h"
#include "device.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 1000000u
#define PROGRESS_NS 2000000u
#define FOREVER UINT64_MAX
#define POLL_NS 50000000u /* for orders */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When the earliest scheduled task ends.  Stuck queues do not count: the doorbell rings for them. */
static uint64_t next_end(const struct device *d)
{
	uint64_t next = FOREVER;

	for (int i = 0; i < d->nsqs; i++) {
		const struct sq *q = d->sqs[i];

		if (q->done < q->scheduled)
			next = min_u64(next, q->ring[q->done % SQ_DEPTH].facts.end);
	}
	return next;
}

/* What a task moves is accounted for while it runs. */
static bool runs_something(const struct device *d, uint64_t now)
{
	for (int i = 0; i < d->nsqs; i++) {
		const struct sq *q = d->sqs[i];

		if (q->done < q->scheduled && q->ring[q->done % SQ_DEPTH].facts.start <= now)
			return true;
	}
	return false;
}

static void sleep_on_doorbell(struct device *d, uint32_t seen, uint64_t until, uint64_t now)
{
	_Atomic uint32_t *bell = &d->board.shared->slots[d->board.slot].doorbell;
	uint64_t ns = until - now;
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	if (until <= now)
		return;
	syscall(SYS_futex, bell, FUTEX_WAIT, seen, until == FOREVER ? NULL : &ts, NULL, 0);
}

static void *engine(void *arg)
{
	struct device *d = arg;
	char name[16];
	sigset_t all;

	sigfillset(&all); /* signals are the job's */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	snprintf(name, sizeof(name), "npusim-dev%u", d->id);
	prctl(PR_SET_NAME, name);
	pthread_mutex_lock(&d->lock);
	while (!d->stopping) {
		uint32_t seen = atomic_load(&d->board.shared->slots[d->board.slot].doorbell);
		uint64_t now = truth_now(), until, log;

		sched_all(d);
		sched_retire(d, now);
		log = prof_deliver(d, now);
		until = next_end(d);
		if (until != FOREVER && until < now + TICK_NS)
			until = now + TICK_NS;
		if (runs_something(d, now))
			until = min_u64(until, now + PROGRESS_NS);
		if (log)
			until = min_u64(until, log);
		if (control_is_used())
			until = min_u64(until, now + POLL_NS);
		d->idle = until > now + TICK_NS;
		pthread_mutex_unlock(&d->lock);
		sleep_on_doorbell(d, seen, until, now);
		pthread_mutex_lock(&d->lock);
		d->idle = false;
	}
	sched_retire(d, truth_now());
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

drvError_t engine_start(struct device *d)
{
	return pthread_create(&d->engine, NULL, engine, d) ? DRV_ERROR_NO_RESOURCES : DRV_ERROR_NONE;
}

void engine_stop(struct device *d)
{
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	pthread_mutex_unlock(&d->lock);
	board_ring(&d->board, d->board.slot);
	pthread_join(d->engine, NULL);
}
