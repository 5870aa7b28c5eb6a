/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures what a probe costs on this machine, in this process, with programs and maps of its own. */
#ifndef NPS_CALIBRATE_H
#define NPS_CALIBRATE_H

#include "attach/capability.h"
#include "capture/cost.h"

/*
 * Fills *COST within two seconds, half of them CPU time; longer on a busy machine.
 * Between the probes some 70 us of computing over 256 KB of memory run, as in a job.
 * Call it in a process with one thread that is otherwise idle. 0: all values were
 * measured, except those of features that this kernel lacks, which are negative. -errno.
 */
int nps_calibrate(const struct nps_capability *cap, struct nps_cost *cost);

#endif
