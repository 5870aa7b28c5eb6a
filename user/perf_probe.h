/* SPDX-License-Identifier: BSD-2-Clause */
/* A probe that is a perf event of its own, on kernels without links of many; with a cookie on every kernel. */
#ifndef NPS_PERF_PROBE_H
#define NPS_PERF_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "link_set.h"

struct bpf_program;
struct nps_stubs;

struct nps_perf_probe {
	const struct bpf_program *program;
	struct nps_stubs *stubs; /* where the kernel has no cookies: what gives them; else NULL */
	unsigned int which; /* the program, as the stubs know it */
	const char *path;
	uint64_t offset, cookie;
	bool returns; /* at the function's return */
	unsigned int tier; /* of the link */
};

/* Attaches in every process that maps the file; the link is kept in LINKS. -errno. */
int nps_perf_probe__attach(const struct nps_perf_probe *p, struct nps_links *links);

#endif
