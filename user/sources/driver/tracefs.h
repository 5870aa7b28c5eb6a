/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's list of tracepoints, also on hosts where tracefs is not mounted. */
#ifndef NPS_TRACEFS_H
#define NPS_TRACEFS_H

/*
 * Calls FN(ARG), which may read tracefs. If it is not mounted, FN runs in a
 * thread with a mount of its own: no other process sees it, and nothing
 * remains. If that mount fails, FN is called without. Returns the result of FN.
 */
int nps_tracefs__with(int (*fn)(void *arg), void *arg);

#endif
