/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an operator's first phase planned, joined to the run of its executor: in another thread, later, once
 * or again, or without a first phase from a cache. The executor's address is the link; as addresses are
 * used again it holds for one run, unless the executor is marked as repeatable.
 */
#ifndef NPS_PLANS_H
#define NPS_PLANS_H

#include "import/session/names.h"
#include "import/session/operands.h"

struct nps_plans {
	struct nps_names *names;
	struct nps_operands operands;
	struct nps_map executor_of; /* (process, address) -> row */
	struct nps_map thread_of; /* pid << 32 | tid -> row */
	struct nps_map cached_of; /* (process, key of the cache) -> row */
	struct nps_vec executors, threads, cached;
	uint64_t missed; /* TENSOR records, by the gaps of their running numbers */
};

void nps_plans__init(struct nps_plans *plans, struct nps_names *names);
void nps_plans__free(struct nps_plans *plans);

/* Is EV one of those that nps_plans__event() wants? */
bool nps_plans__wants(const struct nps_event *ev);

/*
 * Takes in the next event, in order of time, of process PROC. A run becomes a row of names->runs, its number,
 * from 1, is put in slot NPS_RUN_SLOT of EV. 0 or -ENOMEM.
 */
int nps_plans__event(struct nps_plans *plans, uint32_t proc, struct nps_event *ev);

/* After the last event: completes the loss intervals. 0 or a negative errno. */
int nps_plans__finish(struct nps_plans *plans);

#endif
