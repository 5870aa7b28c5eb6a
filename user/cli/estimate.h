/* SPDX-License-Identifier: BSD-2-Clause */
/* Estimate of what a capture of a job with known rates needs: disk space, and CPU time of the job. */
#ifndef NPS_ESTIMATE_H
#define NPS_ESTIMATE_H

#include <stdio.h>

#include "attach/capability.h"

/* Occurrences a second. */
struct nps_rates {
	double launches, calls, syscalls, switches, locks; /* locks: waits for one */
	double seconds; /* length of the capture */
};

/*
 * Prints the estimate. Costs of probes are read from the cache, or measured now and cached, which needs the
 * privileges of a capture; without them they are estimated, and the output states that. 0 or -errno when
 * nothing could be printed.
 */
int nps_estimate__print(const struct nps_capability *cap, const struct nps_rates *rates, FILE *out);

#endif
