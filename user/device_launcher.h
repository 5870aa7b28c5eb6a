/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts and ends the processes that load the driver's libraries (kheaders/device_worker.h), through one that keeps the rights which
 * that takes: the collector does not. All functions may be called from any thread.
 */
#ifndef NPS_DEVICE_LAUNCHER_H
#define NPS_DEVICE_LAUNCHER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "device_worker.h"

struct nps_device_launcher;

/* One process with libraries of the driver. It lives as long as the launcher. */
struct nps_device_worker {
	struct nps_device_launcher *launcher;
	uint32_t id;
	pid_t pid;
	int control; /* through which it gets its connections */
	atomic_bool ended; /* it does not answer any more */
	char how[64]; /* ... and why; of whoever set that */
	char paths[NPS_WORKER_PATHS]; /* of its request: nothing else it names is believed */
	struct nps_device_worker *next;
};

/* Starts npuscope-device-worker with the rights that we have now. -errno; -ENOENT: it is not installed. */
int nps_device_launcher__start(struct nps_device_launcher **out);

/*
 * Starts a worker as R says, in the place of process PID (0: of the host's). -errno, with WHY in words; -ENOENT: none of R's paths
 * can be used.
 */
int nps_device_launcher__worker(struct nps_device_launcher *l, struct nps_launch_request *r, pid_t pid,
				struct nps_device_worker **out, char *why, size_t why_size);

/* A connection of its own to the worker: a descriptor to be closed, or -errno. Does not wait. */
int nps_device_worker__connect(struct nps_device_worker *w);

/*
 * Ends the worker, whatever it does. Calls to it that are under way fail. Its status as wait(2) has it, -1: it was killed. GRACE: it
 * seems to be ending by itself, and gets a moment for that.
 */
int nps_device_worker__end(struct nps_device_worker *w, bool grace);

/* Ends all workers, and starts no more. Calls that are under way fail. */
void nps_device_launcher__end(struct nps_device_launcher *l);

/* Has it been ended? */
bool nps_device_launcher__ended(const struct nps_device_launcher *l);

/* After that no struct nps_device_worker is valid. NULL: nothing. */
void nps_device_launcher__free(struct nps_device_launcher *l);

#endif
