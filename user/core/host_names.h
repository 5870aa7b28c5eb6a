/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host name as a process sees it, by its UTS namespace: a container has its own. Reading the name requires
 * to enter the namespace (CAP_SYS_ADMIN), and a capture drops that capability once probes are attached. So
 * names are cached. Their namespaces are kept open, because the kernel reuses numbers of closed ones. For
 * the main thread only.
 */
#ifndef NPS_HOST_NAMES_H
#define NPS_HOST_NAMES_H

#include <stdbool.h>
#include <sys/types.h>

#define NPS_HOST_NAME 65 /* bytes with the closing NUL */

/* Reads the host name of process PID into NAME. False: it is unknown, NAME is "". */
bool nps_host_name__read(pid_t pid, char name[NPS_HOST_NAME]);

/*
 * Reads the names for all processes of the host, for processes in the same namespaces that are found later.
 */
void nps_host_names__collect(void);

/* Frees all names, and closes their namespaces. */
void nps_host_names__free(void);

#endif
