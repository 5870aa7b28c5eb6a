/* SPDX-License-Identifier: BSD-2-Clause */
#include "control.h"
#include "device.h"
#include "prof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_DEVICES 8

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *devices[DEVICES_MAX];

uint32_t device_count(void)
{
	const char *n = getenv("NPUSIM_DEVICES");
	unsigned long count = n ? strtoul(n, NULL, 10) : DEFAULT_DEVICES;

	return count < 1 || count > DEVICES_MAX ? DEFAULT_DEVICES : (uint32_t)count;
}

void sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* A forked child is another process: it has no device yet, none of our threads, and no lock is held. */
static void forget_devices(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	for (int i = 0; i < DEVICES_MAX; i++) {
		if (devices[i])
			board_forget(&devices[i]->board);
		devices[i] = NULL;
	}
	memcpy(&devices_lock, &unlocked, sizeof(unlocked));
	control_forget();
	channel_forget();
	sampler_forget();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_devices);
}

static struct device *new_device(uint32_t id)
{
	struct device *d = calloc(1, sizeof(*d));
	pthread_condattr_t attr;

	if (!d)
		return NULL;
	d->events = calloc(EVENTS_MAX, sizeof(*d->events));
	if (!d->events || board_open(&d->board, id)) {
		free(d->events);
		free(d);
		return NULL;
	}
	d->id = id;
	d->resets = atomic_load(&d->board.shared->resets);
	d->random = (uint32_t)truth_now() | 1;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->progress, &attr);
	pthread_condattr_destroy(&attr);
	return d;
}

struct device *device_get(uint32_t id)
{
	struct device *d = NULL;

	if (id >= device_count())
		return NULL;
	d = __atomic_load_n(&devices[id], __ATOMIC_ACQUIRE);
	if (d)
		return d;
	pthread_mutex_lock(&devices_lock);
	if (!devices[id])
		__atomic_store_n(&devices[id], new_device(id), __ATOMIC_RELEASE);
	d = devices[id];
	pthread_mutex_unlock(&devices_lock);
	return d;
}

struct device *device_known(uint32_t id)
{
	return id < DEVICES_MAX ? __atomic_load_n(&devices[id], __ATOMIC_ACQUIRE) : NULL;
}

struct device *device_opened(uint32_t id)
{
	struct device *d = device_known(id);

	return d && __atomic_load_n(&d->opened, __ATOMIC_ACQUIRE) && !d->lost ? d : NULL;
}

void device_truth(struct device *d)
{
	truth_start();
	if (!d->logged)
		clock_truth(&d->board, d->id);
	d->logged = true;
}

drvError_t device_open(uint32_t id)
{
	struct device *d = device_get(id);
	drvError_t err = DRV_ERROR_NONE;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&devices_lock);
	d->lost = false;
	if (!d->opened) {
		device_truth(d);
		err = engine_start(d);
		if (!err)
			__atomic_store_n(&d->opened, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&devices_lock);
	return err;
}

/* Its queues are lost, and so are its contexts until it is opened again. */
void device_lost(struct device *d)
{
	for (int i = 0; i < d->nsqs; i++) {
		d->sqs[i]->in_use = false;
		d->sqs[i]->done = d->sqs[i]->scheduled = d->sqs[i]->submitted;
	}
	if (d->opened)
		d->lost = true;
	pthread_cond_broadcast(&d->progress);
}

/* The engines write truth: they stop before the truth file is closed. */
__attribute__((destructor)) static void stop_engines(void)
{
	for (uint32_t i = 0; i < DEVICES_MAX; i++) {
		if (devices[i] && devices[i]->opened)
			engine_stop(devices[i]);
	}
	links_truth();
}
