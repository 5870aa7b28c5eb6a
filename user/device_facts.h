/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which chips the job's devices are. Layout of submissions, ids and kinds of tasks depend on it, so it has to be known of
 * every device that gets tasks, whoever reads their log, and also if nobody does.
 */
#ifndef NPS_DEVICE_FACTS_H
#define NPS_DEVICE_FACTS_H

#include "device_info.h"
#include "driver_ask.h"

#include <cjson/cJSON.h>

/* All zero: nothing is known. */
struct nps_device_facts {
	/* Bit d: of device d; foreign: only containers call it so; of_job: known from a library that is not the host's. */
	uint64_t wanted, known, foreign, of_job;
	pid_t pid[NPS_DEVICE_MAX]; /* that submitted to it last, of those that count for it */
	uid_t uid[NPS_DEVICE_MAX]; /* whose they are; several users', or not known: (uid_t)-1 */
	bool asking; /* the driver, and it has not answered yet */
	char why[320];
	struct nps_device_info info[NPS_DEVICE_MAX];
};

/*
 * Process PID of user UID submits to DEVICE, which is its own number for it if FOREIGN (nps_process__foreign()). Where processes of
 * the host do, those in containers do not count. What a job's library said of DEVICE is forgotten if its users are others now.
 */
void nps_device_facts__used(struct nps_device_facts *f, pid_t pid, uid_t uid, uint32_t device, bool foreign);

/*
 * Is what a process of UID tells of DEVICE to be taken for all that call it so? Not where somebody else's process does, nor where
 * a process of the host does and the teller is in a container, whose numbers are its own.
 */
bool nps_device_facts__believes(const struct nps_device_facts *f, uid_t uid, uint32_t device, bool foreign);

/*
 * Has ASK ask the driver about the devices of which nothing is known yet, but for those in TOLD (bit d: somebody else tells of
 * device d). A device of a container, whose number there is not the driver's, is known if all devices of the host are of one
 * chip. F must outlive ASK.
 */
void nps_device_facts__ask(struct nps_device_facts *f, struct nps_driver_ask *ask, uint64_t told);

/* Warns of those that could not be asked, but for those in TOLD. */
void nps_device_facts__say(const struct nps_device_facts *f, uint64_t told);

/* What the driver says of some devices, of those of the host. */
struct nps_device_infos {
	struct nps_question q;
	pid_t pid; /* through which its library is found */
	uint64_t wanted, known; /* bit d: of device d */
	struct nps_device_info info[NPS_DEVICE_MAX];
};

/* A question for them, whose ANSWER gets that; NULL: no memory. */
struct nps_device_infos *nps_device_infos__new(pid_t pid, uint64_t wanted,
					       void (*answer)(struct nps_question *q, void *ctx), void *ctx);

/* Adds to the session's devices those that are not there. */
void nps_device_facts__describe(const struct nps_device_facts *f, cJSON *devices);

#endif
