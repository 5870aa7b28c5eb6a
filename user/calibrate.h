/* SPDX-License-Identifier: BSD-2-Clause */
/* What a probe costs here and now: measured on this very process, with programs and maps of its own. */
#ifndef NPS_CALIBRATE_H
#define NPS_CALIBRATE_H

#include "capability.h"
#include "cost.h"

/*
 * Takes two seconds, half of them CPU time; longer on a busy machine. Probes are measured between some 70 us of computing over 256 KB
 * of memory, as a job computes between its calls. For a process with one thread that does nothing else meanwhile. 0: each value of *COST was
 * measured, but for those of what this kernel does not have, which are negative. -errno.
 */
int nps_calibrate(const struct nps_capability *cap, struct nps_cost *cost);

#endif
