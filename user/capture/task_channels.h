/* SPDX-License-Identifier: BSD-2-Clause */
/* Channels that the helper has to open, and their parameters for the driver (cann-abi 4.1). */
#ifndef NPS_TASK_CHANNELS_H
#define NPS_TASK_CHANNELS_H

#include "agent.h"
#include "driver/aic_metrics.h"

/*
 * Fills WANT[NPS_AGENT_MAX_WANTS] with the task logs of all generations, and with the counters of METRIC of
 * every task. Returns their number.
 */
unsigned int nps_task_channels(enum nps_aic_metric metric, struct nps_agent_want *want);

#endif
