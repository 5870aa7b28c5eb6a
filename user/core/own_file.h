/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of npuscope's own installation. */
#ifndef NPS_OWN_FILE_H
#define NPS_OWN_FILE_H

#include <stddef.h>

/*
 * Finds file NAME of this installation: beside the program in the build tree, in lib/npuscope when
 * installed. Writes its real path to PATH. 0 or -errno; -ENOENT: it does not exist.
 */
int nps_own_file__find(const char *name, char *path, size_t size);

#endif
