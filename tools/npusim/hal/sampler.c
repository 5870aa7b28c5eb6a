/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that serves the channels that sample. */
#include "prof.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#define FOREVER UINT64_MAX
#define SLEEP_MAX_NS 20000000u

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool runs, wanted;
} sampler = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

void sampler_forget(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
	static const pthread_cond_t idle = PTHREAD_COND_INITIALIZER;

	memcpy(&sampler.lock, &unlocked, sizeof(unlocked));
	memcpy(&sampler.wake, &idle, sizeof(idle));
	sampler.runs = sampler.wanted = false;
}

static uint64_t sample_channel(struct channel *c, uint64_t now)
{
	uint64_t period = (uint64_t)c->period_ms * 1000000u;

	if (!c->next)
		c->next = c->opened;
	if (now >= c->next && now > c->last) { /* a flush may have come in between */
		c->kind->sample(c, now);
		channel_batch_done(c);
		c->next += (now - c->next) / period * period + period;
	}
	return c->next;
}

/* When the next sample is due; FOREVER if no channel samples. */
static uint64_t sample_all(uint64_t now)
{
	uint64_t next = FOREVER;

	for (uint32_t i = 0; i < DEVICES_MAX; i++) {
		struct device *d = device_known(i);

		if (!d)
			continue;
		pthread_mutex_lock(&d->lock);
		prof_check_reset(d);
		for (uint32_t id = 0; id < PROF_CHANNELS; id++) {
			struct channel *c = d->channels[id];
			uint64_t due = FOREVER;

			if (c && c->active && c->collects_samples)
				due = sample_channel(c, now);
			next = due < next ? due : next;
		}
		pthread_mutex_unlock(&d->lock);
	}
	return next;
}

static void *sampler_run(void *arg)
{
	sigset_t all;

	(void)arg;
	sigfillset(&all); /* signals are the job's */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "npusim-prof");
	for (;;) {
		uint64_t now = truth_now(), next;

		pthread_mutex_lock(&sampler.lock);
		sampler.wanted = false;
		pthread_mutex_unlock(&sampler.lock);
		next = sample_all(now);
		pthread_mutex_lock(&sampler.lock);
		while (next == FOREVER && !sampler.wanted)
			pthread_cond_wait(&sampler.wake, &sampler.lock);
		pthread_mutex_unlock(&sampler.lock);
		now = truth_now();
		if (next != FOREVER && next > now)
			sleep_ns(next - now > SLEEP_MAX_NS ? SLEEP_MAX_NS : next - now);
	}
	return NULL;
}

bool sampler_wake(void)
{
	pthread_t thread;

	pthread_mutex_lock(&sampler.lock);
	sampler.wanted = true;
	if (!sampler.runs && !pthread_create(&thread, NULL, sampler_run, NULL)) {
		pthread_detach(thread);
		sampler.runs = true;
	}
	pthread_cond_signal(&sampler.wake);
	pthread_mutex_unlock(&sampler.lock);
	return sampler.runs;
}
