/* SPDX-License-Identifier: BSD-2-Clause */
/* What the halves of kernel_side.h share: one loads the objects and lets go of them (kernel_side_load.c), one works with them. */
#ifndef NPS_KERNEL_SIDE_IMPL_H
#define NPS_KERNEL_SIDE_IMPL_H

#include "kernel_side.h"

struct nps_kernel_side {
	struct nps_capability cap;
	struct nps_legacy *legacy; /* on old kernels, and then none of the others */
	struct sched_bpf *sched; /* loaded first: owns the shared maps */
	struct runtime_bpf *runtime;
	struct nps_stubs *stubs; /* NULL: probes have cookies */
	struct osrt_bpf *osrt; /* NULL unless asked for */
	struct nps_irq_side *irq; /* the same */
	struct hostsys_bpf *hostsys; /* NULL unless asked for, or not to be had */
	struct nps_os_io *io; /* the same; NULL too where the kernel has nothing of it */
	int cpus;
	size_t ring_bytes; /* of each CPU's: a power of two, whole pages */
	int *ring_fds;
};

/* Descriptor of a map that all objects share, or that an old kernel has instead; negative: there is none. */
int nps_kernel_side__map_fd(const struct nps_kernel_side *k, const char *name);

#endif
