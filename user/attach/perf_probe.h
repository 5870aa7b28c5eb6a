/* SPDX-License-Identifier: BSD-2-Clause */
/* A probe with a perf event of its own, on kernels without multi links; with a cookie on every kernel. */
#ifndef NPS_PERF_PROBE_H
#define NPS_PERF_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/link_set.h"

struct bpf_program;
struct nps_trampolines;

struct nps_perf_probe {
	const struct bpf_program *program;
	struct nps_trampolines *trampolines; /* trampolines for kernels without cookies; else NULL */
	unsigned int which; /* index of the program in the trampolines */
	const char *path;
	uint64_t offset, cookie;
	bool returns; /* at the function's return */
	unsigned int tier; /* of the link */
};

/* Attaches in every process that maps the file; the link is added to LINKS. 0 or -errno. */
int nps_perf_probe__attach(const struct nps_perf_probe *p, struct nps_links *links);

#endif
