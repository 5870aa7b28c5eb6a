/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which channels of which devices the profilers of watched jobs have open. The job controls the arguments
 * of its driver calls, so a process costs a fixed number of bytes. Devices are below NPS_DEVICE_MAX,
 * channels below NPS_PROF_CHANNELS.
 */
#ifndef NPS_TAP_CLAIMS_H
#define NPS_TAP_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nps_tap_process;

struct nps_tap_claims {
	struct nps_tap_process **v; /* by pid, ascending */
	size_t n, room;
};

/*
 * A thread is about to start the channel; it has, with that result. 0,
 * -ENOMEM, or -E2BIG: too many threads at once.
 */
int nps_tap_claims__enter(struct nps_tap_claims *c, uint32_t pid, uint32_t tid, uint32_t device,
			  uint32_t channel);
int nps_tap_claims__started(struct nps_tap_claims *c, uint32_t pid, uint32_t tid, uint32_t device,
			    uint32_t channel, bool ok);

/* The channel was read, so it is open unless it has been stopped since its start. 0 or -ENOMEM. */
int nps_tap_claims__read(struct nps_tap_claims *c, uint32_t pid, uint32_t device, uint32_t channel);

/* A stop was tried, with that result: after a failure a read claims the channel again. 0 or -ENOMEM. */
int nps_tap_claims__stopped(struct nps_tap_claims *c, uint32_t pid, uint32_t device, uint32_t channel,
			    bool ok);

/* The process has exited, or called exec. */
void nps_tap_claims__exited(struct nps_tap_claims *c, uint32_t pid);

/* Has the process a channel of the device open, or is it about to? PID 0: has any process? */
bool nps_tap_claims__any(const struct nps_tap_claims *c, uint32_t pid, uint32_t device);

/* The same of any device. */
bool nps_tap_claims__any_device(const struct nps_tap_claims *c, uint32_t pid);

void nps_tap_claims__free(struct nps_tap_claims *c);

#endif
