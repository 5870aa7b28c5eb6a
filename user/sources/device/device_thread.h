/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One device's channels, clocks and npu-smi values, read by a thread of
 * its own, because a driver call can take seconds.
 */
#ifndef NPS_DEVICE_THREAD_H
#define NPS_DEVICE_THREAD_H

#include "core/session_writer.h"
#include "driver/device_lib.h"
#include "driver/device_options.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdatomic.h>

struct nps_device_thread;

/* What all threads share. */
struct nps_device_common {
	const struct nps_device_lib *lib; /* each thread has a connection of its own to it */
	const struct nps_device_opts *opts;
	struct nps_session_writer *session;
	struct nps_log_budget *logs; /* not owned */
	pthread_mutex_t lock; /* protects session->device, and the numbers of directories */
	unsigned int directories; /* number of PROF_* directories so far */
	atomic_uint_fast64_t counted; /* bit d: a helper counts the cores of device d by task */
};

/* Appends to device.nps. */
void nps_device_common__append(struct nps_device_common *c, uint16_t type, const void *data, uint32_t len);

/* Starts the thread of one device, which reports itself if it cannot sample it. 0 or -errno. */
int nps_device_thread__start(struct nps_device_common *common, uint32_t device,
			     struct nps_device_thread **out);

/* RELEASE: closes all channels, and keeps them closed until a call with false. Does not wait. */
void nps_device_thread__release(struct nps_device_thread *t, bool release);

/* Are all channels closed? */
bool nps_device_thread__released(struct nps_device_thread *t);

/* Has the first attempt to start each channel been made? */
bool nps_device_thread__settled(const struct nps_device_thread *t);

/* Was data left unread because of a limit? */
bool nps_device_thread__limited(const struct nps_device_thread *t);

/* Could it not be sampled? The thread has reported why, and ended. */
bool nps_device_thread__failed(const struct nps_device_thread *t);

/* CLOCK_MONOTONIC ns: when its last call into the driver began. */
uint64_t nps_device_thread__sign(const struct nps_device_thread *t);

/* Requests that the thread ends. */
void nps_device_thread__stop(struct nps_device_thread *t);

/* Waits up to MS for its end. False: it hangs in the driver and keeps running, and T must not be freed. */
bool nps_device_thread__join(struct nps_device_thread *t, unsigned int ms);
void nps_device_thread__free(struct nps_device_thread *t);

uint32_t nps_device_thread__device(const struct nps_device_thread *t);

struct nps_device_counts {
	uint64_t bytes, records;
	uint64_t lost; /* records missing by their sequence numbers */
	uint64_t torn; /* bytes that were overwritten */
	uint64_t cpu_ns;
	unsigned int open, refused; /* channels */
};

void nps_device_thread__count(struct nps_device_thread *t, struct nps_device_counts *counts);

/* Adds {"id", "channels": [...], "segments": [...]} to the array. */
void nps_device_thread__describe(struct nps_device_thread *t, cJSON *devices);

/* First -errno of a write, 0: none. */
int nps_device_thread__error(const struct nps_device_thread *t);

#endif
