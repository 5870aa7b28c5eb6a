/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening what a process means by a path: absolute paths, links and ".." begin and end at its root, never at ours. */
#ifndef NPS_OPEN_BELOW_H
#define NPS_OPEN_BELOW_H

/*
 * A handle (O_PATH) of PATH as seen by whoever has ROOT for its root, a directory; -errno. Nothing is opened for reading, so that no
 * device or FIFO is touched. Links of procfs that lead to files without a path are refused or lead nowhere.
 */
int nps_open_below(int root, const char *path);

/* The same without openat2(2), which Linux has since 5.6, and seccomp filters may lack: component by component. */
int nps_open_below__walk(int root, const char *path);

#endif
