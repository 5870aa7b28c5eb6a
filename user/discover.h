/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the processes of the job and the files in them that want probes. */
#ifndef NPS_DISCOVER_H
#define NPS_DISCOVER_H

#include "capture.h"

/* Takes a process into the capture; the next turn looks at it. Recording starts at once when the
 * capture is armed. -ESRCH when it is gone. Known ones are left alone. */
int nps_discover__add(struct nps_capture *c, pid_t pid);

/*
 * The same for a child that the kernel side watches already; once the capture ends nothing is attached. PARENT 0: it is not known
 * whose. STARTED: when it was born (CLOCK_BOOTTIME ns), so that no other process is taken for it; 0: not known. -E2BIG: its family
 * makes more work than it may, it is not taken in; the caller remembers it, or reports it as left out.
 */
int nps_discover__add_born(struct nps_capture *c, pid_t pid, pid_t parent, uint64_t started);

/* The same for who is to pay for it, NULL: nobody yet. */
int nps_discover__add_child(struct nps_capture *c, pid_t pid, struct nps_process *payer, uint64_t started);

/* Who pays for children of PARENT (0: not known): it, or the first of unknown parents; NULL: there is none. */
struct nps_process *nps_discover__payer(struct nps_capture *c, pid_t parent);

/* May a child of that process be described? */
bool nps_discover__may_add_born(struct nps_capture *c, pid_t parent);

/* It has executed a program: reads of it what /proc has, now or when its budget allows it. */
void nps_discover__refresh(struct nps_capture *c, struct nps_process *p);

/* ... and every living descendant. */
int nps_discover__add_tree(struct nps_capture *c, pid_t pid);

/* Lets the records flow, for all processes at once, now that the probes are in place. */
int nps_discover__arm(struct nps_capture *c);

/*
 * Looks again at what a process has mapped: attaches new libraries and the helper. As far as its budget
 * allows; the turns to come do the rest.
 */
void nps_discover__scan(struct nps_capture *c, struct nps_process *p);

/*
 * Looks at processes that have mapped something, the one that made least work of late first: each a few times
 * a second.
 */
void nps_discover__turn(struct nps_capture *c);

/* Looks at all that there is to be seen now, each process as long as its budget allows. */
void nps_discover__settle(struct nps_capture *c);

/* Tells what was left out and not told yet. */
void nps_discover__finish(struct nps_capture *c);

/* Attaches to the libraries that a job about to start will find through LD_LIBRARY_PATH, and the marker to its file. */
void nps_discover__before_exec(struct nps_capture *c, const char *command);

struct nps_process *nps_discover__find(struct nps_capture *c, pid_t pid);

/* Path of the helper library that belongs to this program. -ENOENT. */
int nps_discover__agent_path(char *path, size_t size);

#endif
