/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that a capture cannot record, or only in part, for a reason outside of it. */
#ifndef NPS_TARGET_STATE_H
#define NPS_TARGET_STATE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Prints a line about PID, which is to be watched, if it is stopped, a kernel thread, or a 32-bit program.
 * True if a line was printed. False for a process that has exited.
 */
bool nps_target_state__report(pid_t pid);

#endif
