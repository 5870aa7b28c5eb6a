/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities that are not needed any more are given up, for good: each thread's as it begins, the main thread's when the probes
 * are in place. What starts processes in other people's places keeps its own (device_launcher.h).
 */
#ifndef NPS_PRIVILEGE_H
#define NPS_PRIVILEGE_H

#include <stdbool.h>

enum nps_privilege {
	NPS_PRIVILEGE_NONE, /* a thread that calls a worker, and writes what comes back */
	NPS_PRIVILEGE_PROC, /* one that reads /proc of other users' processes */
	NPS_PRIVILEGE_NAMESPACES, /* ... and looks into their network namespaces */
	NPS_PRIVILEGE_STATISTICS, /* one that switches on run statistics of BPF programs */
	NPS_PRIVILEGE_RESULTS, /* one that analyses a session: the job's files name its functions, the kernel has its counts */
	NPS_PRIVILEGE_RECORDS, /* one that takes records of BPF programs, and looks at processes that they name */
	NPS_PRIVILEGE_CAPTURE, /* one that attaches probes to what comes, and reads what they record */
	NPS_PRIVILEGE_SWITCHES, /* ... and turns the driver's tracepoints off, by files that nobody's mode lets write */
};

/*
 * Of the calling thread. ADMIN: it attaches probes, and this kernel wants CAP_SYS_ADMIN for that. Results are
 * written into the session's directory, which is ours: that takes none.
 */
void nps_privilege__keep(enum nps_privilege what, bool admin);

/* What WHAT returns while the calling thread is without CAPABILITY, which it has again afterwards; -errno if that cannot be tried. */
int nps_privilege__try_without(int capability, int (*what)(void));

#endif
