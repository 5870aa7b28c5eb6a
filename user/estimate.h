/* SPDX-License-Identifier: BSD-2-Clause */
/* What a capture of a job with known rates will take: disk, and CPU time of the job. */
#ifndef NPS_ESTIMATE_H
#define NPS_ESTIMATE_H

#include <stdio.h>

#include "capability.h"

/* Occurrences a second. */
struct nps_rates {
	double launches, calls, syscalls, switches, locks; /* locks: waits for one */
	double seconds; /* how long the capture lasts */
};

/*
 * Prints the estimate. What probes cost is taken from the cache, or measured now and cached, which needs the privileges of a
 * capture; without them it is an estimate, which is said. 0 or -errno when nothing could be printed.
 */
int nps_estimate__print(const struct nps_capability *cap, const struct nps_rates *rates, FILE *out);

#endif
