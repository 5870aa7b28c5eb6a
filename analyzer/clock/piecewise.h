/* SPDX-License-Identifier: BSD-2-Clause */
/* Piecewise linear fit through brackets: where the clock was, and how far off that can be. */
#ifndef NPS_CLOCK_PIECEWISE_H
#define NPS_CLOCK_PIECEWISE_H

#include "clock/outlier_filter.h"

#define NPS_RATE_STRAY                                                                                       \
	0.25e-6 /* how far the rate may stray from a line that fits, from one sample to the next */

/* A known point of the clock; between two of them it is taken as straight. */
struct nps_clock_node {
	double x, y; /* as of struct nps_bracket */
	double lo, hi; /* the truth is in [y + lo, y + hi] */
	double slack; /* of the rate, up to the next node */
	size_t begun; /* changes of the rate that began up to here */
};

struct nps_piecewise {
	struct nps_clock_node *nodes; /* by x, no two at the same */
	size_t nnodes;
	struct nps_line first, last;
	size_t n; /* of pieces */
};

/*
 * Draws the fewest segments through the brackets of EPOCH, after removing the few brackets that alone
 * contradict what is before and after them. 0 or -ENOMEM; nps_piecewise__free() in either case.
 */
int nps_piecewise__draw(struct nps_piecewise *piecewise, struct nps_epoch *epoch);
void nps_piecewise__free(struct nps_piecewise *piecewise);

#endif
