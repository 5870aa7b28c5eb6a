/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples devices from outside the job, through the driver's own interfaces: one thread per device. Nothing
 * is opened in the job, and what another process uses is not touched.
 */
#ifndef NPS_DEVICE_SAMPLER_H
#define NPS_DEVICE_SAMPLER_H

#include "driver/device_info.h"
#include "driver/device_options.h"
#include "driver/driver_query.h"
#include "sources/device/device_thread.h"

#include <stdio.h>

struct nps_device_sampler;

/*
 * Opens the driver's libraries through the queue of queries (device_lib.h; PIDS: processes of the job);
 * once they are open, opens device.nps and, with --sys-devices all or a list, starts its devices. 0,
 * -ENOMEM. OPTS, SESSION and the sampler must outlive the queue. LOGS limits the channels, and must outlive
 * the sampler. COUNTED: as in nps_device_sampler__counted().
 */
int nps_device_sampler__start(const struct nps_device_opts *opts, struct nps_session_writer *session,
			      struct nps_log_budget *logs, struct nps_driver_query *query, const pid_t *pids,
			      size_t n, uint64_t counted, struct nps_device_sampler **out);

/* True if the driver is missing or unusable: the reason has been printed. */
bool nps_device_sampler__failed(const struct nps_device_sampler *s);

/*
 * Process PID of the job, in a container if FOREIGN, uses DEVICE by its own number: the device is sampled
 * from now on, unless the user selected devices, or the device is unknown. No effect for devices already
 * sampled. NULL as s, here and below: nothing is sampled.
 */
void nps_device_sampler__uses(struct nps_device_sampler *s, pid_t pid, bool foreign, uint32_t device);

/*
 * Process PID belongs to the job: devices on which it has memory, now or later, are the job's devices.
 * FOREIGN: it is in a container, and numbers them differently.
 */
void nps_device_sampler__process(struct nps_device_sampler *s, pid_t pid, bool foreign);

/* Devices on which process PID has had memory, as bits. */
uint64_t nps_device_sampler__used_by(const struct nps_device_sampler *s, pid_t pid);

/*
 * Bit d of DEVICES: a helper counts the cores of device d by task. On chips that cannot do both, sampling
 * of the cores stops.
 */
void nps_device_sampler__counted(struct nps_device_sampler *s, uint64_t devices);

/* Call once a second: queries on which devices the job's processes have memory. */
void nps_device_sampler__poll(struct nps_device_sampler *s);

/* Releases the channels of DEVICE (NPS_DEVICE_MAX: of all) for the job's own profiler. Does not wait. */
void nps_device_sampler__release(struct nps_device_sampler *s, uint32_t device);

/* Are channels of DEVICE sampled, or would they be? */
bool nps_device_sampler__samples(const struct nps_device_sampler *s, uint32_t device);

/* Has it released them? */
bool nps_device_sampler__released(const struct nps_device_sampler *s, uint32_t device);

/* Starts released channels again, into a PROF_* directory of their own. */
void nps_device_sampler__resume(struct nps_device_sampler *s, uint32_t device);

/* Waits up to MS until each channel of every device has been tried once. */
void nps_device_sampler__settle(struct nps_device_sampler *s, unsigned int ms);

/*
 * Records last samples and ends the threads. Prints one line for each thread whose call into the driver
 * does not return before the DEADLINE has RESERVE ns left. MEANWHILE (NULL: nothing) is called with ARG
 * some fifty times a second until then.
 */
void nps_device_sampler__stop(struct nps_device_sampler *s, struct nps_deadline *deadline, uint64_t reserve,
			      void (*meanwhile)(void *arg), void *arg);

/*
 * Call once the libraries' process has ended: waits up to half a second for threads that hung, so that
 * nothing is written after it.
 */
void nps_device_sampler__reap(struct nps_device_sampler *s);

/* Was something not sampled because of a limit? */
bool nps_device_sampler__limited(const struct nps_device_sampler *s);
/* False: a thread hangs, and keeps running with what it uses, including the launcher. NULL: does nothing. */
bool nps_device_sampler__free(struct nps_device_sampler *s);

/* Did the process that calls the driver end before the capture? That has been reported. */
bool nps_device_sampler__lost_driver(const struct nps_device_sampler *s);

/* Sum over all devices. */
void nps_device_sampler__counts(struct nps_device_sampler *s, struct nps_device_counts *counts);
size_t nps_device_sampler__devices(const struct nps_device_sampler *s);

/* Is it unknown yet which devices there are, or which the job uses? */
bool nps_device_sampler__waits(const struct nps_device_sampler *s);

/* Does a thread hang? */
bool nps_device_sampler__hangs(const struct nps_device_sampler *s);

/* Adds "device_sampler" to session.json, and missing entries to its "devices". */
void nps_device_sampler__describe(struct nps_device_sampler *s, cJSON *session, cJSON *devices);

/* Prints a summary line. */
void nps_device_sampler__print(struct nps_device_sampler *s, uint64_t elapsed_ns, FILE *out);

#endif
