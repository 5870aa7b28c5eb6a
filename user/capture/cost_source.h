/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source of the costs that a capture reports: the cache of this boot (cost_cache.h), or an estimate until a
 * child process has measured them beside the capture. Nothing waits for the child: a capture may begin and
 * end without its result.
 */
#ifndef NPS_COST_SOURCE_H
#define NPS_COST_SOURCE_H

#include <stdbool.h>
#include <sys/types.h>

#include "attach/capability.h"
#include "capture/cost.h"

enum nps_cost_basis { NPS_COST_ESTIMATED, NPS_COST_CACHED, NPS_COST_MEASURED };

struct nps_cost_source {
	struct nps_cost cost;
	enum nps_cost_basis basis;
	pid_t child; /* measures, or waits for the start; 0: none */
	int socket; /* to the child; -1: none, or nothing more will come */
	bool failed; /* it ended without a result: the estimate stays */
};

/*
 * Reads the cache, or estimates and forks the child that will measure, which sleeps. Call before there are
 * threads. The child is killed when the calling thread exits.
 */
void nps_cost_source__open(struct nps_cost_source *s, const struct nps_capability *cap);

/* Starts the measurement. Does not block. */
void nps_cost_source__start(struct nps_cost_source *s);

/* Reads the child's result. True: *S has changed, to measured or failed. Does not block. */
bool nps_cost_source__poll(struct nps_cost_source *s);

/* Waits up to a minute until costs are measured or the child has failed. */
void nps_cost_source__wait(struct nps_cost_source *s);

/* Kills the child. Does not wait. */
void nps_cost_source__end(struct nps_cost_source *s);

/* The same, and waits until the kernel has removed its probes, which takes a moment. */
void nps_cost_source__close(struct nps_cost_source *s);

/* "measured", "cached" or "estimated". */
const char *nps_cost_basis__name(enum nps_cost_basis basis);

#endif
