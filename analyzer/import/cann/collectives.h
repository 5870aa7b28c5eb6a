/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives: each call of the host is one run or, in a graph, several; each run has a name with the
 * number of the call in its group (prof-raw 4.4, outputs 0.3).
 */
#ifndef NPS_CANN_COLLECTIVES_H
#define NPS_CANN_COLLECTIVES_H

#include "import/cann/capture.h"

struct nps_collectives {
	struct nps_cann_capture *capture;
	struct nps_vec lanes; /* struct lane: the tasks of a graph's call on one stream */
	struct nps_map lane_of; /* call << 32 | stream -> row */
	uint32_t steps;
};

/* Numbers the calls of CAPTURE, which stays in use. 0 or negative errno; free in either case. */
int nps_collectives__begin(struct nps_collectives *collectives, struct nps_cann_capture *capture);
void nps_collectives__free(struct nps_collectives *collectives);

/* Row TASK of `task` is a run of HOST, part of a collective. Runs come by start. 0 or negative errno. */
int nps_collectives__part(struct nps_collectives *collectives, uint32_t task,
			  const struct nps_host_task *host);

/* All tasks are known: fills comm_op. 0 or negative errno. */
int nps_collectives__finish(struct nps_collectives *collectives);

#endif
