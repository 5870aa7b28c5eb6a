/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chips of the job's devices. The layout of submissions, and ids and kinds of tasks depend on the chip,
 * so it has to be known of every device that gets tasks, whoever reads its log, and even if no log is read.
 */
#ifndef NPS_DEVICE_FACTS_H
#define NPS_DEVICE_FACTS_H

#include "driver/device_info.h"
#include "driver/driver_query.h"

#include <cjson/cJSON.h>

/* All zero: nothing is known. */
struct nps_device_facts {
	/*
	 * Bit d: of device d. foreign: only containers use this number; of_job:
	 * known from a library other than the host's.
	 */
	uint64_t wanted, known, foreign, of_job;
	pid_t pid[NPS_DEVICE_MAX]; /* the last one that submitted to it, of those that count for it */
	uid_t uid[NPS_DEVICE_MAX]; /* owner of those processes; several users', or unknown: (uid_t)-1 */
	bool querying; /* a query is at the driver */
	char why[320];
	struct nps_device_info info[NPS_DEVICE_MAX];
};

/*
 * Process PID of user UID submits to DEVICE; if FOREIGN (nps_process__foreign()) that is its container's
 * number of it. Once processes of the host use a number, those in containers do not count. If the users of
 * DEVICE change, facts from a job's library are dropped.
 */
void nps_device_facts__used(struct nps_device_facts *f, pid_t pid, uid_t uid, uint32_t device, bool foreign);

/*
 * Is what a process of UID reports of DEVICE valid for all processes that use this number? Not if another
 * user's process uses it, nor if a process of the host does and the reporting one is in a container, which
 * has numbers of its own.
 */
bool nps_device_facts__believes(const struct nps_device_facts *f, uid_t uid, uint32_t device, bool foreign);

/*
 * Queries the driver about devices of which nothing is known, except those whose bit is set in the last
 * argument: another source describes them. A container's device, whose number is not the driver's, is known
 * if all devices of the host have the same chip. F must outlive the queue of queries.
 */
void nps_device_facts__query(struct nps_device_facts *f, struct nps_driver_query *query, uint64_t reported);

/* Warns of devices that could not be queried, with the same exception. */
void nps_device_facts__report(const struct nps_device_facts *f, uint64_t reported);

/* A query of the driver about some of the host's devices. */
struct nps_device_infos {
	struct nps_question q;
	pid_t pid; /* a process that has the library loaded */
	uint64_t wanted, known; /* bit d: of device d */
	struct nps_device_info info[NPS_DEVICE_MAX];
};

/* Creates the query; ANSWER is called with it. NULL: no memory. */
struct nps_device_infos *nps_device_infos__new(pid_t pid, uint64_t wanted,
					       void (*answer)(struct nps_question *q, void *ctx), void *ctx);

/* Adds devices that are missing from the session's devices. */
void nps_device_facts__describe(const struct nps_device_facts *f, cJSON *devices);

#endif
