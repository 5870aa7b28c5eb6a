/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the NPU's driver from the loop that everything else of a capture waits for. A sick driver may keep a call for
 * ever, so a thread of its own makes them, one after the other; what comes back is taken up between two turns of the loop.
 * What is slow and does answer is told from that: the time of each call counts, not that of a question, which makes many.
 */
#ifndef NPS_DRIVER_ASK_H
#define NPS_DRIVER_ASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "deadline.h"
#include "device_dcmi.h"
#include "device_lib.h"

#define NPS_DRIVER_LATE_MS                                                                                   \
	2000 /* after that the loop waits no longer; of one call: it is said that the driver does not answer */

/* The driver as that thread knows it; nobody else looks at it. */
struct nps_driver {
	struct nps_device_lib lib;
	struct nps_driver_try {
		pid_t pid; /* through which the library was not found, 0: none */
		uint64_t pause, again; /* ns; CLOCK_MONOTONIC ns: it is not looked for before that */
	} hal_try, dcmi_try;
	bool dcmi_unusable; /* it is there; said once */
	struct nps_dcmi_place places[NPS_DEVICE_MAX]; /* finding one asks about every card */
	uint64_t placed; /* bit d: places[d] is known */
	char why[320]; /* it is not there */
	atomic_bool ending; /* the capture: a question that nobody needs an answer to any more is cut short */
};

/* First member of one. */
struct nps_question {
	struct nps_question *next;
	void *ctx;
	/* In the thread: may use the question and the driver alone, since everybody else may have gone meanwhile. */
	void (*ask)(struct nps_question *q, struct nps_driver *d);
	/* In the loop, with CTX; never, if the driver did not answer before the end. */
	void (*answer)(struct nps_question *q, void *ctx);
};

/*
 * Opens libascend_hal.so, once; PIDS as in device_lib.h. False: d->why says why. A process that does not have it may have it a
 * moment later, as one that has not executed its program yet: it is looked for again, now and then.
 */
bool nps_driver__open(struct nps_driver *d, const pid_t *pids, size_t n);

/* The same of libdcmi.so; without it d->lib.has[NPS_WORKER_DCMI] stays false. After nps_driver__open(). */
void nps_driver__open_dcmi(struct nps_driver *d, const pid_t *pids, size_t n);

/* Ids of the host's devices; returns how many, 0: the driver does not tell. After nps_driver__open(). */
uint32_t nps_driver__devices(const struct nps_driver *d, uint32_t ids[NPS_DEVICE_MAX]);

/*
 * The one device whose memory process PID of the host holds, as its driver there numbers it. False: it holds none, or of several,
 * or DCMI does not tell of every device who does.
 */
bool nps_driver__only_device(struct nps_driver *d, pid_t pid, uint32_t *device);

/* Where DCMI has the device; NULL: it does not say. */
const struct nps_dcmi_place *nps_driver__place(struct nps_driver *d, uint32_t device);

struct nps_driver_ask;

/* LAUNCHER starts what loads the driver's libraries, and outlives it; NULL: they cannot be loaded. -errno. */
int nps_driver_ask__new(struct nps_device_launcher *launcher, struct nps_driver_ask **out);

/*
 * Q (calloc'ed; NULL: nothing) is asked after those before it, and freed after its answer. Who asks again and again
 * waits for the answer first: else questions to a driver that hangs pile up.
 */
void nps_driver_ask__post(struct nps_driver_ask *a, struct nps_question *q);

/* Gives the answers that are there. Warns, once, of a driver that does not answer. */
void nps_driver_ask__turn(struct nps_driver_ask *a);

/*
 * The same until all is answered, for NPS_DRIVER_LATE_MS and until the DEADLINE (NULL: none) at most, and not at all where an
 * answer is that late already. MEANWHILE is called with ARG some hundred times a second. False: something was not answered.
 */
bool nps_driver_ask__wait(struct nps_driver_ask *a, struct nps_deadline *deadline,
			  void (*meanwhile)(void *arg), void *arg);

/* The capture ends: sets `ending` of the driver. */
void nps_driver_ask__end(struct nps_driver_ask *a);

/* Did a call ever take that long? */
bool nps_driver_ask__was_late(const struct nps_driver_ask *a);

/*
 * Questions without an answer get none. False: its thread hangs, and is left to itself, with what it uses: the launcher, too.
 * NULL: nothing.
 */
bool nps_driver_ask__free(struct nps_driver_ask *a);

#endif
