/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts and ends the processes that load the driver's libraries (kheaders/device_worker.h), through a
 * process that keeps the rights needed for that, because the collector drops them. All functions may be
 * called from any thread.
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

/* One process with libraries of the driver. The struct is valid as long as the launcher. */
struct nps_device_worker {
	struct nps_device_launcher *launcher;
	uint32_t id;
	pid_t pid;
	int control; /* socket through which it receives its connections */
	atomic_bool ended; /* it does not answer any more */
	char how[64]; /* ... and why; written by the thread that set it */
	char paths[NPS_WORKER_PATHS]; /* those of its request: other paths in its answers are rejected */
	struct nps_device_worker *next;
};

/* Starts npuscope-device-worker with the current rights. -errno; -ENOENT: it is not installed. */
int nps_device_launcher__start(struct nps_device_launcher **out);

/*
 * Starts a worker as R describes, in the namespaces of process PID (0: of the host). -errno, with the
 * reason in WHY; -ENOENT: none of R's paths can be used.
 */
int nps_device_launcher__worker(struct nps_device_launcher *l, struct nps_launch_request *r, pid_t pid,
				struct nps_device_worker **out, char *why, size_t why_size);

/* Opens a connection to the worker: a descriptor that the caller closes, or -errno. Does not wait. */
int nps_device_worker__connect(struct nps_device_worker *w);

/*
 * Ends the worker in any state. Calls to it that have not returned fail. Returns its status as from
 * wait(2), -1: it was killed. GRACE: it seems to be exiting already, so wait a moment first.
 */
int nps_device_worker__end(struct nps_device_worker *w, bool grace);

/* Ends all workers, and starts no more. Calls that have not returned fail. */
void nps_device_launcher__end(struct nps_device_launcher *l);

/* Has nps_device_launcher__end() been called? */
bool nps_device_launcher__ended(const struct nps_device_launcher *l);

/* After that no struct nps_device_worker is valid. NULL: does nothing. */
void nps_device_launcher__free(struct nps_device_launcher *l);

#endif
