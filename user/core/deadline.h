/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long other threads and processes are waited for, in all: successive waits share one deadline. Time in
 * which this thread was not scheduled hardly counts, because the others were probably not scheduled either.
 * Three times the deadline is the limit in any case.
 */
#ifndef NPS_DEADLINE_H
#define NPS_DEADLINE_H

#include <stdint.h>

#define NPS_DEADLINE_TURN_NS 50000000ULL

struct nps_deadline {
	uint64_t left; /* ns */
	uint64_t checked, end; /* CLOCK_MONOTONIC ns: of the last call, and of the limit */
	uint64_t cpu; /* CPU time of the thread at the last call, ns */
};

/* NS: the deadline from now on. Call in the thread that calls nps_deadline__left(). */
void nps_deadline__init(struct nps_deadline *d, uint64_t ns);

/*
 * Remaining ns to wait, 0: none. Call at least every NPS_DEADLINE_TURN_NS: a longer interval without CPU
 * time of this thread counts as time without a CPU.
 */
uint64_t nps_deadline__left(struct nps_deadline *d);

#endif
