/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long others are waited for, in all: a wait in several places draws on one deadline. Time in which this thread was not
 * scheduled hardly counts: those that are waited for were not either then.
 */
#ifndef NPS_DEADLINE_H
#define NPS_DEADLINE_H

#include <stdint.h>

struct nps_deadline {
	uint64_t left; /* ns */
	uint64_t looked; /* CLOCK_MONOTONIC ns */
};

void nps_deadline__init(struct nps_deadline *d, uint64_t ns);

/* ns that may still be waited, 0: none. To be called at least every NPS_DEADLINE_TURN_NS: more than that is taken for a time without a CPU. */
uint64_t nps_deadline__left(struct nps_deadline *d);

#define NPS_DEADLINE_TURN_NS 50000000ULL

#endif
