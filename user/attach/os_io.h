/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to block devices and major page faults: attaches what the kernel supports, and reports the rest.
 */
#ifndef NPS_OS_IO_H
#define NPS_OS_IO_H

#include "attach/bpf_loader.h"

struct nps_os_io;

/*
 * Loads the programs, with a line about what this kernel lacks. 0; -errno: nothing could be loaded. Free
 * with nps_os_io__free().
 */
int nps_os_io__open(struct nps_bpf_loader *k, size_t ring_bytes, struct nps_os_io **out);
/* Attaches them, likewise. */
int nps_os_io__attach(struct nps_os_io *io);
void nps_os_io__detach(struct nps_os_io *io);
void nps_os_io__free(struct nps_os_io *io);

#endif
