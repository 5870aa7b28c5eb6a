/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of block devices and major page faults: what of it the kernel offers is attached, the rest is said. */
#ifndef NPS_OS_IO_H
#define NPS_OS_IO_H

#include "kernel_side.h"

struct nps_os_io;

/* Loads the programs; a line says what this kernel does not have. -errno: none of it. Free with nps_os_io__free. */
int nps_os_io__open(struct nps_kernel_side *k, size_t ring_bytes, struct nps_os_io **out);
/* The same. */
int nps_os_io__attach(struct nps_os_io *io);
void nps_os_io__detach(struct nps_os_io *io);
void nps_os_io__free(struct nps_os_io *io);

#endif
