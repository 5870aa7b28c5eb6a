/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
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

struct device *device_opened(uint32_t id)
{
	struct device *d = id < DEVICES_MAX ? __atomic_load_n(&devices[id], __ATOMIC_ACQUIRE) : NULL;

	return d && __atomic_load_n(&d->opened, __ATOMIC_ACQUIRE) ? d : NULL;
}

drvError_t device_open(uint32_t id)
{
	struct device *d = device_get(id);
	drvError_t err = DRV_ERROR_NONE;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&devices_lock);
	if (!d->opened) {
		truth_start();
		truth_device(id, COUNTER_HZ, d->board.shared->counter_offset,
			     (double)d->board.shared->drift_ppb / 1000.0);
		err = engine_start(d);
		if (!err)
			__atomic_store_n(&d->opened, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&devices_lock);
	return err;
}

/* The engines write truth: they stop before the truth file is closed. */
__attribute__((destructor)) static void stop_engines(void)
{
	for (uint32_t i = 0; i < DEVICES_MAX; i++) {
		if (device_opened(i))
			engine_stop(devices[i]);
	}
}
