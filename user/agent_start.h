/* SPDX-License-Identifier: BSD-2-Clause */
/* Between two parts of libnpuscope_agent.so: when the helper begins (agent_start.c), and what it does (agent.c). */
#ifndef NPS_AGENT_START_H
#define NPS_AGENT_START_H

#include <stdbool.h>

/*
 * Makes the memory that npuscope looks for, and the thread that waits there to be woken. False: it could not be made, and the job goes
 * on as if we were not there.
 */
bool nps_agent__start(void);

#endif
