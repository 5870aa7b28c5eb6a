/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of the job, from /proc and from what the kernel side tells of births, programs and deaths: a process that ended
 * before /proc was read is known by the latter alone. A pid can come again; with the time of its start it is one process.
 */
#ifndef NPS_JOB_PROCESSES_H
#define NPS_JOB_PROCESSES_H

#include "capture.h"

/* Takes P, born of PARENT (NULL: it was named), into the list; it is freed with the capture. */
void nps_job_processes__add(struct nps_capture *c, struct nps_process *p, struct nps_process *parent);

/* The last one that was added of that pid; NULL: none. */
struct nps_process *nps_job_processes__find(const struct nps_capture *c, pid_t pid);

/* The same, of those that STARTED (CLOCK_BOOTTIME ns, 0: not known) can mean. */
struct nps_process *nps_job_processes__find_started(const struct nps_capture *c, pid_t pid, uint64_t started);

/*
 * The process that a notice of a birth, a program or a death is about; it is read from /proc, or made of the notice, if it is
 * not known yet. NULL: it is none of the job's, or was born after the capture.
 */
struct nps_process *nps_job_processes__of_notice(struct nps_capture *c, const struct nps_notice *n);

/* The kernel side watches it, but its birth was not told: takes it in, now or when that can be paid for. */
void nps_job_processes__missed(struct nps_capture *c, pid_t pid);

/*
 * Takes in processes that live, and whose parents could not pay for that when they were born, of those that can now: for NS of time,
 * and as long as the account of all work allows it. The next call goes on where this one ended. Those that are no more are reported
 * as left out.
 */
void nps_job_processes__retry(struct nps_capture *c, uint64_t ns);

/* The capture ends: those that still wait for that are reported as left out. */
void nps_job_processes__give_up(struct nps_capture *c);

/* It has used CPU_NS of CPU time since it began: what is new of that is the capture's. */
void nps_job_processes__add_cpu(struct nps_capture *c, struct nps_process *p, uint64_t cpu_ns);

/* The same of all, by what /proc has now. */
void nps_job_processes__account_cpu(struct nps_capture *c);

/* P (or NULL) has ended, CLOCK_MONOTONIC ns; CODE: NPS_EXIT_UNKNOWN until the kernel side tells it. */
void nps_job_processes__exited(struct nps_process *p, uint64_t when, int code);

/*
 * Once a second, NOW (CLOCK_MONOTONIC ns): accounts for CPU time, and notices who ended without a word of the kernel side. Of many
 * processes it is those that ran of late, and of the others so many as can be in a second, each in its turn.
 */
void nps_job_processes__look(struct nps_capture *c, uint64_t now);

/* Reports the processes of which something is missing since they ended too soon. */
void nps_job_processes__report(struct nps_capture *c);

/* Those whose command lines are missing. */
uint64_t nps_job_processes__unread(const struct nps_capture *c);

#endif
