/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of which a capture would show nothing, or a part, through no fault of its own. */
#ifndef NPS_TARGET_STATE_H
#define NPS_TARGET_STATE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Says in a line what is special about PID, which is to be watched: it is stopped, it is a thread of the kernel, it runs a 32-bit
 * program. True if something was said. A process that is gone is not special.
 */
bool nps_target_state__report(pid_t pid);

#endif
