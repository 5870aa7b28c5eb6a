/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens what a path means to a process: absolute paths, links and ".."
 * are resolved inside its root, never in ours.
 */
#ifndef NPS_OPEN_BELOW_H
#define NPS_OPEN_BELOW_H

/*
 * Opens PATH (O_PATH) as seen by a process whose root directory is ROOT. Returns a descriptor or -errno.
 * Nothing is opened for reading, so no device or FIFO is affected. Links of procfs that lead to files
 * without a path fail.
 */
int nps_open_below(int root, const char *path);

/*
 * The same component by component, without openat2(2), which kernels
 * before 5.6 lack and seccomp filters may refuse.
 */
int nps_open_below__walk(int root, const char *path);

#endif
