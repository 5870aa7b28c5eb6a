/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the two parts of bpf_loader.h: bpf_loader_load.c loads and
 * frees the objects, bpf_loader.c uses them.
 */
#ifndef NPS_BPF_LOADER_IMPL_H
#define NPS_BPF_LOADER_IMPL_H

#include "attach/bpf_loader.h"

struct nps_bpf_loader {
	struct nps_capability cap;
	struct nps_legacy *legacy; /* on old kernels, and then all others are NULL */
	struct sched_bpf *sched; /* loaded first: owns the shared maps */
	struct runtime_bpf *runtime;
	struct nps_trampolines *trampolines; /* NULL: probes have cookies */
	struct osrt_bpf *osrt; /* NULL unless requested */
	struct nps_irq_tracer *irq; /* the same */
	struct hostsys_bpf *hostsys; /* NULL unless requested and available */
	struct nps_os_io *io; /* the same; also NULL if the kernel supports none of it */
	uint32_t python_at; /* NPS_PY_AT_* */
	int cpus;
	size_t ring_bytes; /* of each CPU's: a power of two, whole pages */
	int *ring_fds;
};

/* Descriptor of a map that all objects share, or of an old kernel's counterpart; negative: none. */
int nps_bpf_loader__map_fd(const struct nps_bpf_loader *k, const char *name);

#endif
