/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities are dropped for good once they are not needed: those of each thread when it begins, those of
 * the main thread when the probes are attached. The process that starts others in the job's namespaces
 * keeps its own (device_launcher.h).
 */
#ifndef NPS_PRIVILEGE_H
#define NPS_PRIVILEGE_H

#include <stdbool.h>

enum nps_privilege {
	NPS_PRIVILEGE_NONE, /* a thread that calls a worker, and writes the results */
	NPS_PRIVILEGE_PROC, /* one that reads /proc of other users' processes */
	NPS_PRIVILEGE_NAMESPACES, /* ... and in their network namespaces */
	NPS_PRIVILEGE_STATISTICS, /* one that switches on run statistics of BPF programs */
	/* one that analyses a session: reads function names in the job's files, and the kernel's counts */
	NPS_PRIVILEGE_RESULTS,
	NPS_PRIVILEGE_RECORDS, /* one that reads records of BPF programs, and the processes that they name */
	NPS_PRIVILEGE_CAPTURE, /* one that attaches probes to new files, and reads their records */
	/* ... and switches the driver's tracepoints off, whose files nobody may write by their mode */
	NPS_PRIVILEGE_SWITCHES,
};

/*
 * Drops the calling thread's other capabilities. ADMIN: it attaches probes, and this kernel requires
 * CAP_SYS_ADMIN for that. The session's directory is ours, so writing results needs none.
 */
void nps_privilege__keep(enum nps_privilege what, bool admin);

/*
 * Calls WHAT without CAPABILITY, which the calling thread has again afterwards. Returns its result; -errno
 * if that cannot be tried.
 */
int nps_privilege__try_without(int capability, int (*what)(void));

#endif
