/* SPDX-License-Identifier: BSD-2-Clause */
/* The job of `record -- CMD`: started, but held before exec until the probes are attached. */
#ifndef NPS_LAUNCH_H
#define NPS_LAUNCH_H

#include <sys/types.h>

/* The umask at the start of main(): the command gets it back. */
extern mode_t nps_caller_umask;

/*
 * Forks a child that waits, then execs `argv`. `preload`: a library to prepend to LD_PRELOAD, or NULL.
 * Returns the pid and in *go a descriptor for nps_launch__go(); -errno on failure.
 */
pid_t nps_launch__prepare(char *const argv[], const char *preload, int *go);

/* Lets the child exec. 0, or -errno if the exec failed. */
int nps_launch__go(int go);

/* Ends a child that has not been let go. */
void nps_launch__cancel(pid_t pid, int go);

/* Path of the file that execvp would run, in `path`. 0 or -ENOENT. */
int nps_launch__find(const char *name, char *path, size_t size);

#endif
