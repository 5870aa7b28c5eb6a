/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's list of tracepoints, on hosts where nobody has mounted it. */
#ifndef NPS_TRACEFS_H
#define NPS_TRACEFS_H

/*
 * Calls FN(ARG), which may look tracepoints up by name. Where tracefs is not mounted, FN runs in a thread that sees one of its own:
 * nothing is mounted for anybody else, and nothing is left. Returns what FN does; where the mount cannot be made FN is called all the same.
 */
int nps_tracefs__with(int (*fn)(void *arg), void *arg);

#endif
