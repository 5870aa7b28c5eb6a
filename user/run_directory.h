/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory of npuscope below /run, where things are kept until the machine is booted again. Whatever comes first makes it, so
 * that its mode is decided here alone: everybody may look into it, as costs are read without privileges; files that are nobody
 * else's business have modes of their own.
 */
#ifndef NPS_RUN_DIRECTORY_H
#define NPS_RUN_DIRECTORY_H

/*
 * NAME in PARENT, a directory or AT_FDCWD; made if it is missing, readable for all whatever the umask is and whoever made it.
 * Returns it open for reading, to be closed. -EPERM: it is a link, no directory, another user's, or others may write it.
 */
int nps_run_directory__open(int parent, const char *name);

#endif
