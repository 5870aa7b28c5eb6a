/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between two parts of libnpuscope_agent.so: when the helper begins
 * (agent_start.c), and what it does (agent.c).
 */
#ifndef NPS_AGENT_START_H
#define NPS_AGENT_START_H

#include <stdbool.h>

/*
 * Creates the memory that npuscope maps, and the thread that waits there for a capture. False: it failed,
 * and the job is unaffected.
 */
bool nps_agent__start(void);

#endif
