/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Overlap Analysis without lists: intervals of one device come in order of their start, and are counted as
 * soon as a later one begins. Computing, not overlapped communication and free cover [first, last] without
 * a gap.
 */
#ifndef NPS_SWEEP_H
#define NPS_SWEEP_H

#include "model/model.h"

#include <stdbool.h>

/* Values of ENUM_OVERLAP_ANALYSIS_TYPE. */
enum nps_overlap_type {
	NPS_OVERLAP_COMPUTE = 0,
	NPS_OVERLAP_COMM = 1,
	NPS_OVERLAP_COMM_ALONE = 2,
	NPS_OVERLAP_FREE = 3
};

/* Lengths, ns. first and last bound everything; both 0 if there is nothing. */
struct nps_overlap_sums {
	uint64_t computing, communication, not_overlapped, free;
	uint64_t first, last;
};

struct nps_sweep {
	struct nps_overlap_sums sums; /* complete after finish */
	uint64_t settled; /* everything before it is */
	uint64_t busy[2]; /* until when: computing, communicating */
	uint32_t row[3]; /* open rows of compute, comm, comm alone */
	bool begun, joined; /* joined: the open row of `alone` may grow */
};

/*
 * Adds [START, END), computing or (COMM) communicating. Rows go to TABLE by start with DEVICE; NULL: only
 * sums. 0 or negative errno.
 */
int nps_sweep__add(struct nps_sweep *sweep, bool comm, uint64_t start, uint64_t end,
		   struct nps_overlap_table *table, uint32_t device);

/* After the last interval. */
int nps_sweep__finish(struct nps_sweep *sweep, struct nps_overlap_table *table, uint32_t device);

#endif
