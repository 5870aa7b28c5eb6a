/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory of npuscope below /run, for data that is kept until the next boot. The first component that
 * needs it creates it through this function, so that its mode is always the same: readable for all users,
 * because costs are read without privileges; private files have modes of their own.
 */
#ifndef NPS_RUN_DIRECTORY_H
#define NPS_RUN_DIRECTORY_H

/*
 * Opens NAME in PARENT, a directory or AT_FDCWD; creates it if it is missing, readable for all users with
 * any umask and creator. Returns a descriptor for reading, which the caller closes, or -errno; -EPERM: it
 * is a link, no directory, owned by another user, or writable by others.
 */
int nps_run_directory__open(int parent, const char *name);

#endif
