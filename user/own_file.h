/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of npuscope's own installation. */
#ifndef NPS_OWN_FILE_H
#define NPS_OWN_FILE_H

#include <stddef.h>

/*
 * Where the file NAME of this installation is: beside the program in the build tree, in lib/npuscope when installed. Its real path
 * into PATH; -errno, -ENOENT: it is not there.
 */
int nps_own_file__find(const char *name, char *path, size_t size);

#endif
