/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long others are waited for, in all: a wait in several places draws on one deadline. Time in which this thread was not
 * scheduled hardly counts: those that are waited for were not either then. Three times as long is the end in any case.
 */
#ifndef NPS_DEADLINE_H
#define NPS_DEADLINE_H

#include <stdint.h>

#define NPS_DEADLINE_TURN_NS 50000000ULL

struct nps_deadline {
	uint64_t left; /* ns */
	uint64_t looked, end; /* CLOCK_MONOTONIC ns */
	uint64_t cpu; /* CPU time of the thread, ns, when it was looked at */
};

/* Of the calling thread, as nps_deadline__left(). */
void nps_deadline__init(struct nps_deadline *d, uint64_t ns);

/*
 * ns that may still be waited, 0: none. To be called at least every NPS_DEADLINE_TURN_NS: more than that, without CPU time of this
 * thread, is taken for a time without a CPU.
 */
uint64_t nps_deadline__left(struct nps_deadline *d);

#endif
