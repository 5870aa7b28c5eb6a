/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries to the NPU's driver from the capture's loop, which must not block. A faulty driver may never
 * return from a call, so a thread of its own makes them, one after another; the loop handles the answers
 * between two turns. A driver is late by the time of one call, not of a query, which can make many.
 */
#ifndef NPS_DRIVER_QUERY_H
#define NPS_DRIVER_QUERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/deadline.h"
#include "driver/device_dcmi.h"
#include "driver/device_lib.h"

/* after that the loop stops waiting; after a single call of that length a warning is printed */
#define NPS_DRIVER_LATE_MS 2000

/* State of that thread, which no other thread accesses. */
struct nps_driver {
	struct nps_device_lib lib;
	struct nps_driver_try {
		pid_t pid; /* of the last process without the library, 0: none */
		uint64_t pause, again; /* ns until the next try; CLOCK_MONOTONIC ns of it */
	} hal_try, dcmi_try;
	bool dcmi_unusable; /* the library exists, but cannot be used; reported once */
	/* cached, because finding a device queries every card */
	struct nps_dcmi_unit units[NPS_DEVICE_MAX];
	uint64_t known_units; /* bit d: those of device d are known */
	char why[320]; /* why the library is missing */
	atomic_bool ending; /* the capture ends: queries whose answer is not needed any more are aborted */
};

/* First member of a query. */
struct nps_question {
	struct nps_question *next;
	void *ctx;
	/*
	 * Called in the thread. May only use the query and the driver, because
	 * everything else may have been freed.
	 */
	void (*query)(struct nps_question *q, struct nps_driver *d);
	/* Called in the loop, with CTX; not called if the driver does not answer before the end. */
	void (*answer)(struct nps_question *q, void *ctx);
};

/*
 * Opens libascend_hal.so, once; PIDS as in device_lib.h. False: the reason is in d->why. A process may load
 * the library later, for example after its exec, so there are retries now and then.
 */
bool nps_driver__open(struct nps_driver *d, const pid_t *pids, size_t n);

/*
 * The same for libdcmi.so; without it d->lib.has[NPS_WORKER_DCMI] stays false. Call after nps_driver__open().
 */
void nps_driver__open_dcmi(struct nps_driver *d, const pid_t *pids, size_t n);

/* Ids of the host's devices; returns their number, 0: unknown. Call after nps_driver__open(). */
uint32_t nps_driver__devices(const struct nps_driver *d, uint32_t ids[NPS_DEVICE_MAX]);

/*
 * The only device on which process PID of the host has memory, by the driver's number. False: none,
 * several, or DCMI does not report the processes of every device.
 */
bool nps_driver__only_device(struct nps_driver *d, pid_t pid, uint32_t *device);

/* DCMI's numbers of the device; NULL: unknown. */
const struct nps_dcmi_unit *nps_driver__unit(struct nps_driver *d, uint32_t device);

struct nps_driver_query;

/*
 * LAUNCHER starts the processes that load the driver's libraries, and
 * must outlive it; NULL: none can be loaded. -errno.
 */
int nps_driver_query__new(struct nps_device_launcher *launcher, struct nps_driver_query **out);

/*
 * Queues Q (calloc'ed; NULL: does nothing), which is freed after its answer. Callers that repeat a query
 * must wait for the answer first, or queries pile up if the driver hangs.
 */
void nps_driver_query__post(struct nps_driver_query *a, struct nps_question *q);

/* Handles the answers that have arrived. Warns, once, of a driver that does not answer. */
void nps_driver_query__turn(struct nps_driver_query *a);

/*
 * The same until all queries are answered: up to NPS_DRIVER_LATE_MS and until the DEADLINE (NULL: none),
 * and not at all if an answer is that late already. MEANWHILE is called with ARG some hundred times a
 * second. False: some were not answered.
 */
bool nps_driver_query__wait(struct nps_driver_query *a, struct nps_deadline *deadline,
			    void (*meanwhile)(void *arg), void *arg);

/* The capture ends: sets `ending` of the driver. */
void nps_driver_query__end(struct nps_driver_query *a);

/* Did a call ever take that long? */
bool nps_driver_query__was_late(const struct nps_driver_query *a);

/*
 * Drops unanswered queries. False: the thread hangs and keeps running, with what it uses, including the
 * launcher. NULL: does nothing.
 */
bool nps_driver_query__free(struct nps_driver_query *a);

#endif
