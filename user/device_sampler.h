/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples devices from outside the job, through the driver's own interfaces: a thread for each device. Nothing is opened in
 * the job, and what another process uses is left alone.
 */
#ifndef NPS_DEVICE_SAMPLER_H
#define NPS_DEVICE_SAMPLER_H

#include "device_info.h"
#include "device_options.h"
#include "device_thread.h"
#include "driver_ask.h"

#include <stdio.h>

struct nps_device_sampler;

/*
 * Has ASK open the driver's libraries (device_lib.h; PIDS: processes of the job); when they are, opens device.nps and, with
 * --sys-devices all or a list, starts its devices. 0, -ENOMEM. OPTS, SESSION and the sampler must outlive ASK's answers.
 * LOGS: what the channels may cost; outlives the sampler. COUNTED: as nps_device_sampler__counted().
 */
int nps_device_sampler__start(const struct nps_device_opts *opts, struct nps_session *session,
			      struct nps_log_budget *logs, struct nps_driver_ask *ask, const pid_t *pids,
			      size_t n, uint64_t counted, struct nps_device_sampler **out);

/* The driver is not there, or cannot be used: the reason has been printed. */
bool nps_device_sampler__failed(const struct nps_device_sampler *s);

/*
 * Process PID of the job, in a container if FOREIGN, uses DEVICE, as it numbers them: from now on it is sampled, unless devices were
 * named by the user, or nobody knows which it is. At once for those that are already. NULL as s, here and below:
 * nothing is sampled.
 */
void nps_device_sampler__uses(struct nps_device_sampler *s, pid_t pid, bool foreign, uint32_t device);

/*
 * Process PID is the job's: devices of whose memory it holds some are its devices, now and when it is found to later. FOREIGN:
 * it is in a container, and calls them by other numbers.
 */
void nps_device_sampler__process(struct nps_device_sampler *s, pid_t pid, bool foreign);

/* Devices of which process PID has been seen to hold memory, as bits. */
uint64_t nps_device_sampler__used_by(const struct nps_device_sampler *s, pid_t pid);

/* Bit d of DEVICES: a helper counts the cores of device d by task. Where a chip cannot do both they are not sampled any more. */
void nps_device_sampler__counted(struct nps_device_sampler *s, uint64_t devices);

/* Once a second: asks which devices the job's processes hold memory of. */
void nps_device_sampler__look(struct nps_device_sampler *s);

/* The job's own profiler wants the channels of DEVICE (NPS_DEVICE_MAX: of all): lets go of them. Does not wait. */
void nps_device_sampler__release(struct nps_device_sampler *s, uint32_t device);

/* Are channels of DEVICE sampled, or would be? */
bool nps_device_sampler__samples(const struct nps_device_sampler *s, uint32_t device);

/* Has it let go of them? */
bool nps_device_sampler__released(const struct nps_device_sampler *s, uint32_t device);

/* ... and does no longer: they are started again, into a PROF_* directory of their own. */
void nps_device_sampler__resume(struct nps_device_sampler *s, uint32_t device);

/* Waits up to MS until each channel of every device has been tried once. */
void nps_device_sampler__settle(struct nps_device_sampler *s, unsigned int ms);

/*
 * Last samples, then the threads end; of those whose call into the driver does not come back before the DEADLINE has RESERVE ns left,
 * one line each says so. MEANWHILE (NULL: nothing) is called with ARG some fifty times a second until then.
 */
void nps_device_sampler__stop(struct nps_device_sampler *s, struct nps_deadline *deadline, uint64_t reserve,
			      void (*meanwhile)(void *arg), void *arg);

/* The libraries' process was ended: waits up to half a second for threads that hung, so that nothing is written any more. */
void nps_device_sampler__reap(struct nps_device_sampler *s);

/* Was something not sampled because it was more than may be? */
bool nps_device_sampler__limited(const struct nps_device_sampler *s);
/* False: a thread hangs, and is left to itself, with what it uses: the launcher, too. NULL: nothing. */
bool nps_device_sampler__free(struct nps_device_sampler *s);

/* Did what calls the driver end before the capture? That has been said. */
bool nps_device_sampler__lost_driver(const struct nps_device_sampler *s);

/* Sum over all devices. */
void nps_device_sampler__counts(struct nps_device_sampler *s, struct nps_device_counts *counts);
size_t nps_device_sampler__devices(const struct nps_device_sampler *s);

/* Has the driver not told yet which devices there are, or which the job uses? */
bool nps_device_sampler__waits(const struct nps_device_sampler *s);

/* Did one not end? */
bool nps_device_sampler__hangs(const struct nps_device_sampler *s);

/* Adds "device_sampler" to session.json, and what is not there to its "devices". */
void nps_device_sampler__describe(struct nps_device_sampler *s, cJSON *session, cJSON *devices);

/* A line for the terminal. */
void nps_device_sampler__print(struct nps_device_sampler *s, uint64_t elapsed_ns, FILE *out);

#endif
