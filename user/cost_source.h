/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a capture has the costs from that it reports: from the cache of this boot (cost_cache.h), else an estimate until
 * a child of ours has measured them beside the capture. Nothing waits for the child: a capture may begin and end without it.
 */
#ifndef NPS_COST_SOURCE_H
#define NPS_COST_SOURCE_H

#include <stdbool.h>
#include <sys/types.h>

#include "capability.h"
#include "cost.h"

enum nps_cost_basis { NPS_COST_ESTIMATED, NPS_COST_CACHED, NPS_COST_MEASURED };

struct nps_cost_source {
	struct nps_cost cost;
	enum nps_cost_basis basis;
	pid_t child; /* measures, or waits to be let; 0: there is none */
	int socket; /* to it, -1: none, or nothing more will come */
	bool failed; /* it ended without having measured: the estimate stays */
};

/*
 * Reads the cache, or estimates, and forks the child that is to measure, which sleeps. Call before there are threads. The
 * child dies with the thread that calls this.
 */
void nps_cost_source__open(struct nps_cost_source *s, const struct nps_capability *cap);

/* Lets the child measure. Takes no time. */
void nps_cost_source__start(struct nps_cost_source *s);

/* What the child has found out by now. True: *S has changed, to measured or to failed. Does not wait. */
bool nps_cost_source__look(struct nps_cost_source *s);

/* Waits until it is measured, or cannot be: for up to a minute. */
void nps_cost_source__wait(struct nps_cost_source *s);

/* Ends the child, whatever it does. Does not wait. */
void nps_cost_source__end(struct nps_cost_source *s);

/* The same, and waits until the kernel has taken its probes out, which takes a moment. */
void nps_cost_source__close(struct nps_cost_source *s);

/* "measured", "cached" or "estimated". */
const char *nps_cost_basis__name(enum nps_cost_basis basis);

#endif
