/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages about driver errors that a helper met. The helper's memory
 * belongs to the job: numbers in it are checked.
 */
#ifndef NPS_AGENT_ERRORS_H
#define NPS_AGENT_ERRORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent.h"

/* What has been reported of one helper; zero: nothing. */
struct nps_agent_errors {
	uint32_t printed[NPS_AGENT_MAX_DEVICES]; /* number of errors reported, by device */
	/* when the helper began to open it, CLOCK_MONOTONIC ns; 0: it does not, UINT64_MAX: reported */
	uint64_t opening[NPS_AGENT_MAX_DEVICES];
};

/*
 * Reports new errors of the helper of process PID, each once, and a driver
 * that does not answer for long. Call at least once a second. *LINES: number
 * of lines already printed for the process's owner, which is limited.
 */
void nps_agent_errors__report(struct nps_agent_errors *e, pid_t pid, const struct nps_agent_control *ctl,
			      unsigned int *lines);

/*
 * At the end: reports what was refused first and worked later, and what
 * never worked. True if there is any of the latter.
 */
bool nps_agent_errors__sum_up(pid_t pid, const struct nps_agent_control *ctl, unsigned int *lines);

#endif
