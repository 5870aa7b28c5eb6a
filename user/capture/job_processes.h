/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of the job, from /proc and from BPF events about forks, execs and exits: a process that
 * exits before /proc is read is known from events only. Pids are reused; together with the start time they
 * identify a process.
 */
#ifndef NPS_JOB_PROCESSES_H
#define NPS_JOB_PROCESSES_H

#include "capture/capture.h"

/* Adds P, a child of PARENT (NULL: named by the user), to the list; it is freed with the capture. */
void nps_job_processes__add(struct nps_capture *c, struct nps_process *p, struct nps_process *parent);

/* The process with that pid that was added last; NULL: none. */
struct nps_process *nps_job_processes__find(const struct nps_capture *c, pid_t pid);

/* The same, if its start can be STARTED (CLOCK_BOOTTIME ns, 0: unknown). */
struct nps_process *nps_job_processes__find_started(const struct nps_capture *c, pid_t pid, uint64_t started);

/*
 * The process that a notice of a fork, exec or exit is about; if it is new it is read from /proc, or
 * created from the notice. NULL: it is not the job's, or was started after the capture.
 */
struct nps_process *nps_job_processes__of_notice(struct nps_capture *c, const struct nps_notice *n);

/* BPF programs watch the process, but its fork was not reported: adds it, now or when the budget allows. */
void nps_job_processes__missed(struct nps_capture *c, pid_t pid);

/*
 * Adds live processes whose parents' budget did not allow it at their start and now does: for up to NS of
 * time, and as long as the budget of all processes allows. The next call continues where this one ended.
 * Those that have exited are reported as left out.
 */
void nps_job_processes__retry(struct nps_capture *c, uint64_t ns);

/* The capture ends: those that still wait for that are reported as left out. */
void nps_job_processes__abandon(struct nps_capture *c);

/* The process has used CPU_NS of CPU time since its start: adds the increase to the capture's. */
void nps_job_processes__add_cpu(struct nps_capture *c, struct nps_process *p, uint64_t cpu_ns);

/* The same for all processes, from /proc. */
void nps_job_processes__account_cpu(struct nps_capture *c);

/* P (or NULL) has exited at WHEN, CLOCK_MONOTONIC ns; CODE: NPS_EXIT_UNKNOWN until a BPF event reports it. */
void nps_job_processes__exited(struct nps_process *p, uint64_t when, int code);

/*
 * Call once a second, NOW: CLOCK_MONOTONIC ns. Accounts for CPU time, and notices processes that exited
 * without an event. If there are many, it reads those that ran recently, and of the others as many as fit
 * into a second, in turn.
 */
void nps_job_processes__poll(struct nps_capture *c, uint64_t now);

/* Reports the processes of which something is missing because they exited too early. */
void nps_job_processes__report(struct nps_capture *c);

/* Number of processes without a command line. */
uint64_t nps_job_processes__unread(const struct nps_capture *c);

#endif
