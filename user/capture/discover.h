/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the processes of the job and the files in them that want probes. */
#ifndef NPS_DISCOVER_H
#define NPS_DISCOVER_H

#include "capture/capture.h"

/*
 * Adds a process to the capture; the next turn reads its mappings. Records begin at once if the capture is
 * armed. -ESRCH: it has exited. No effect for known processes.
 */
int nps_discover__add(struct nps_capture *c, pid_t pid);

/*
 * The same for a child that BPF programs watch already; nothing is attached once the capture ends. PARENT
 * 0: unknown. STARTED: its start, CLOCK_BOOTTIME ns, so that no other process is mistaken for it; 0:
 * unknown. -E2BIG: its family has used up its budget, and it is not added; the caller retries later, or
 * reports it as left out.
 */
int nps_discover__add_born(struct nps_capture *c, pid_t pid, pid_t parent, uint64_t started);

/* The same with the process whose budget pays for it, NULL: none yet. */
int nps_discover__add_child(struct nps_capture *c, pid_t pid, struct nps_process *payer, uint64_t started);

/*
 * The process that pays for children of PARENT (0: unknown): it, or the
 * first with an unknown parent; NULL: none.
 */
struct nps_process *nps_discover__payer(struct nps_capture *c, pid_t parent);

/* Does the budget allow to describe a child of that process? */
bool nps_discover__may_add_born(struct nps_capture *c, pid_t parent);

/* After an exec: reads the process's /proc entries again, now or when its budget allows. */
void nps_discover__refresh(struct nps_capture *c, struct nps_process *p);

/* ... and every living descendant. */
int nps_discover__add_tree(struct nps_capture *c, pid_t pid);

/* Starts the records, for all processes at once, when the probes are attached. */
int nps_discover__arm(struct nps_capture *c);

/*
 * Reads a process's mappings again: attaches to new libraries and the helper. As far as its budget allows;
 * later turns do the rest.
 */
void nps_discover__scan(struct nps_capture *c, struct nps_process *p);

/*
 * Scans processes that have mapped something, those with the least
 * recent work first: each a few times a second.
 */
void nps_discover__turn(struct nps_capture *c);

/* Scans all processes now, each as far as its budget allows. */
void nps_discover__settle(struct nps_capture *c);

/* Reports what was left out and not reported yet. */
void nps_discover__finish(struct nps_capture *c);

/*
 * Attaches to the libraries that a job about to start will find through
 * LD_LIBRARY_PATH, and the marker to its file.
 */
void nps_discover__before_exec(struct nps_capture *c, const char *command);

struct nps_process *nps_discover__find(struct nps_capture *c, pid_t pid);

/* Path of the helper library that belongs to this program. 0 or -ENOENT. */
int nps_discover__agent_path(char *path, size_t size);

#endif
