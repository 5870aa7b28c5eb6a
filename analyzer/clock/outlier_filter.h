/* SPDX-License-Identifier: BSD-2-Clause */
/* From reads of a counter, some of them slow or wrong, to brackets that can be relied on. */
#ifndef NPS_CLOCK_OUTLIER_FILTER_H
#define NPS_CLOCK_OUTLIER_FILTER_H

#include "clock/lines.h"
#include "session.h"

#define NPS_CLOCK_EPOCHS 16 /* a device is not reset more often */

/* Brackets of one life of the counter, between two resets, in order. */
struct nps_epoch {
	uint64_t counter0, host0; /* where x = y = 0 */
	struct nps_bracket *brackets;
	size_t n;
};

struct nps_outlier_filter {
	struct nps_epoch epochs[NPS_CLOCK_EPOCHS]; /* in order of host time */
	size_t nepochs;
	size_t reads; /* that were given */
};

/*
 * READS are N reads of one counter of NOMINAL ns a tick, in any order; nothing in them is trusted. Reads
 * that follow each other within 2 ms become one bracket: the stretch on which most of them agree. Reads
 * that no oscillator could have made together go to different sets: the greatest consistent set stays, and
 * sets before or after it, when the counter was set anew. 0; -ENODATA: no usable read; -EILSEQ: most of
 * them contradict each other, at the nominal rate; -ENOMEM.
 */
int nps_outlier_filter__fill(struct nps_outlier_filter *filter, const struct nps_device_clock *reads,
			     size_t n, double nominal);
void nps_outlier_filter__free(struct nps_outlier_filter *filter);

#endif
