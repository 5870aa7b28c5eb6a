/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ns by time and CPU. The time that a thread used is known between two samples of it, and threads are
 * sampled at different times; here it is spread over slices of one length.
 */
#ifndef NPS_HOST_GRID_H
#define NPS_HOST_GRID_H

#include "import/session/host_samples.h"

struct nps_host_grid {
	struct nps_vec cells; /* float: ns; by slice, then by CPU */
	uint64_t begin, end, slice; /* ns; the last slice goes no further than `end` */
	size_t slices, cpus;
};

/* Slices of SLICE ns, or longer ones where there would be too many. 0 or negative errno. */
int nps_host_grid__init(struct nps_host_grid *grid, int tmpfd, uint64_t begin, uint64_t end, uint64_t slice,
			size_t cpus);
void nps_host_grid__free(struct nps_host_grid *grid);

/* NS of CPU, used at any time from START to END: of it what falls into the grid's time. */
void nps_host_grid__add(struct nps_host_grid *grid, uint64_t start, uint64_t end, uint32_t cpu, uint64_t ns);

/* How much, ns, of [START, END) lies in SLICE. */
uint64_t nps_host_grid__common(const struct nps_host_grid *grid, size_t slice, uint64_t start, uint64_t end);

static inline float *nps_host_grid__cell(const struct nps_host_grid *grid, size_t slice, size_t cpu)
{
	return &NPS_AT(&grid->cells, float, slice * grid->cpus + cpu);
}

/* The slice in which TIME lies; times outside lie in the first or last. */
static inline size_t nps_host_grid__slice(const struct nps_host_grid *grid, uint64_t time)
{
	uint64_t at = time > grid->begin ? (time - grid->begin) / grid->slice : 0;

	return at < grid->slices ? at : grid->slices - 1;
}

/* What a thread used between its last sample and this one. False: there was none before. */
struct nps_host_use {
	uint64_t start, end, run, wait, switches;
	uint32_t pid, tid, cpu;
};

/* Steps through the threads' samples, with the sample before of each. */
struct nps_host_walk {
	const struct nps_host_samples *host;
	struct nps_map before; /* tid -> row of its last sample */
	size_t at;
	int err;
};

/* The next use of CPU; false: there is none, or WALK->err. */
bool nps_host_walk__next(struct nps_host_walk *walk, struct nps_host_use *use);
void nps_host_walk__free(struct nps_host_walk *walk);

#endif
