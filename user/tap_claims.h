/* SPDX-License-Identifier: BSD-2-Clause */
/* Which channels of which devices the profilers of watched jobs hold. */
#ifndef NPS_TAP_CLAIMS_H
#define NPS_TAP_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPS_TAP_MOST_CLAIMS 1024 /* of one process: 16 devices of 64 channels */

struct nps_tap_list {
	struct nps_tap_claim {
		uint32_t pid, device, channel;
		uint32_t tid; /* that is just starting it; 0: it is held */
	} * v;
	size_t n, room;
};

struct nps_tap_claims {
	struct nps_tap_list now;
	struct nps_tap_list ended; /* stopped, and not started since: a read in flight then claims nothing */
};

/* A thread is about to start the channel; it did, with that result. 0, -ENOMEM, or -E2BIG. */
int nps_tap_claims__enter(struct nps_tap_claims *c, uint32_t pid, uint32_t tid, uint32_t device,
			  uint32_t channel);
int nps_tap_claims__started(struct nps_tap_claims *c, uint32_t pid, uint32_t tid, uint32_t device,
			    uint32_t channel, bool ok);

/* The channel was read, so it is held unless it has been stopped since its start. 0, -ENOMEM, or -E2BIG. */
int nps_tap_claims__read(struct nps_tap_claims *c, uint32_t pid, uint32_t device, uint32_t channel);

/* It was to be stopped, with that result: after a failure a read claims it again. 0, -ENOMEM, or -E2BIG. */
int nps_tap_claims__stopped(struct nps_tap_claims *c, uint32_t pid, uint32_t device, uint32_t channel,
			    bool ok);

/* The process is no more, or is another program now. */
void nps_tap_claims__gone(struct nps_tap_claims *c, uint32_t pid);

/* Does the process hold something of the device, or is about to? PID 0: does any? */
bool nps_tap_claims__any(const struct nps_tap_claims *c, uint32_t pid, uint32_t device);

void nps_tap_claims__free(struct nps_tap_claims *c);

#endif
