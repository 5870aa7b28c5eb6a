/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Iterations of a job from the sequence of its launches alone: what repeats, and where each repetition
 * begins (docs/steps.md).
 */
#ifndef NPS_PERIODS_H
#define NPS_PERIODS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define NPS_PERIODS_MIN 4 /* repetitions without which there are no steps */
#define NPS_PERIODS_CONFIDENCE 0.6 /* below it there are none either */

struct nps_period_input {
	const uint32_t *symbols; /* what was launched, in order of submission */
	const uint64_t *times; /* of submission, ascending; NULL: unknown */
	size_t len;
	/* By symbol: it updates parameters, as kernels of optimizers do. NULL: unknown. */
	const uint8_t *updates;
	size_t nsymbols; /* each symbol is below it */
	int dirfd; /* directory for temporary files */
};

struct nps_period_step {
	uint32_t first, end; /* launches [first, end) */
	uint32_t kind; /* 1, 2, ... number of the repeated sequence, by first appearance; 0: like none */
	bool irregular; /* not exactly that sequence */
};

struct nps_periods {
	struct nps_vec steps; /* struct nps_period_step by first; none: see `reason` */
	uint32_t kinds;
	/*
	 * share of the launches that repeat in steps; half of it if nothing shows where an iteration begins
	 */
	double confidence;
	const char *reason; /* why there are no steps; NULL if there are */
};

/*
 * Finds the iterations of INPUT. Takes time near linear in the launches, and about 60 bytes for each. The
 * result depends on the input alone. 0 or negative errno; nps_periods__free() in any case.
 */
int nps_periods__find(const struct nps_period_input *input, struct nps_periods *found);

void nps_periods__free(struct nps_periods *found);

#endif
