/* SPDX-License-Identifier: BSD-2-Clause */
/* What a helper met at the driver, in words. The helper's memory belongs to the job: numbers in it are checked. */
#ifndef NPS_AGENT_ERRORS_H
#define NPS_AGENT_ERRORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent.h"

/* What has been told of one helper; zero: nothing. */
struct nps_agent_errors {
	uint32_t told[NPS_AGENT_MAX_DEVICES]; /* how many of a device's errors */
	uint64_t opening
		[NPS_AGENT_MAX_DEVICES]; /* since when, CLOCK_MONOTONIC ns; 0: it is not, UINT64_MAX: that was told */
};

/*
 * Tells what is new of the errors of process PID's helper, each once, and that the driver took long. At least once a second. *LINES: how
 * many the owner of the process has had of the terminal.
 */
void nps_agent_errors__say(struct nps_agent_errors *e, pid_t pid, const struct nps_agent_control *ctl,
			   unsigned int *lines);

/* At the end: tells what was refused in the beginning and had later, and what never was. True if there is such. */
bool nps_agent_errors__sum_up(pid_t pid, const struct nps_agent_control *ctl, unsigned int *lines);

#endif
