/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name of the host as a process sees it, by its UTS namespace: a container has one of its own. Only who may enter a namespace
 * can read its name (CAP_SYS_ADMIN), which a capture gives up once probes are in place: so names are kept, with their namespaces,
 * whose numbers the kernel would give again. For the main thread alone.
 */
#ifndef NPS_HOST_NAMES_H
#define NPS_HOST_NAMES_H

#include <stdbool.h>
#include <sys/types.h>

#define NPS_HOST_NAME 65 /* bytes with the closing NUL */

/* Reads that of process PID into NAME. false: it is not known, NAME is "". */
bool nps_host_name__read(pid_t pid, char name[NPS_HOST_NAME]);

/* Reads those of all processes of the host, for processes that are found later in the same namespaces. */
void nps_host_names__collect(void);

/* Forgets all, and lets go of the namespaces. */
void nps_host_names__free(void);

#endif
