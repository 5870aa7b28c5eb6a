/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who runs where the job waits. The measure is simple on purpose: for each slice of time on each CPU it
 * compares how long threads of the job were runnable there without running with how long others ran there,
 * and shares the smaller of the two among the others by their time. A thread waited on the CPU on which it
 * was sampled.
 */
#include "import/session/host_grid.h"

#include <errno.h>
#include <stdlib.h>

#define MOST_SLICES 4096 /* as the grid has it */
#define SLICE 100000000ULL /* ns: longer than the samples are apart */

struct contest {
	struct nps_host_samples *host;
	struct nps_host_grid waited, ran; /* the job's threads; all others */
	struct nps_map row_of; /* pid -> row of neighbours */
};

static size_t samples_count_cpus(const struct nps_host_samples *host)
{
	size_t n = 1;

	for (size_t i = 0; i < host->threads.len; i++) {
		uint32_t cpu = NPS_AT(&host->threads, struct nps_host_thread, i).cpu;

		if (cpu < NPS_HOST_CPUS)
			n = NPS_MAX(n, (size_t)cpu + 1);
	}
	return n;
}

static int fill_grids(struct contest *c)
{
	struct nps_host_walk walk = { .host = c->host };
	struct nps_host_use use;

	while (nps_host_walk__next(&walk, &use)) {
		if (nps_host_samples__is_target(c->host, use.pid))
			nps_host_grid__add(&c->waited, use.start, use.end, use.cpu, use.wait);
		else
			nps_host_grid__add(&c->ran, use.start, use.end, use.cpu, use.run);
	}
	nps_host_walk__free(&walk);
	return walk.err;
}

static struct nps_neighbour *neighbour(struct contest *c, uint32_t pid)
{
	uint32_t row = nps_map__get(&c->row_of, pid);
	const struct nps_host_named *name;
	struct nps_neighbour *n;

	if (row != NPS_NONE)
		return &NPS_AT(&c->host->neighbours, struct nps_neighbour, row);
	n = nps_vec__push(&c->host->neighbours);
	if (!n || nps_map__put(&c->row_of, pid, c->host->neighbours.len - 1))
		return NULL;
	name = nps_host_samples__name(c->host, NPS_HOST_PROCESS, pid);
	n->pid = pid;
	n->name = name ? name->text : NPS_NONE;
	return n;
}

/* The part of USE that lies in one slice, and its part of what was taken there. */
static double contended_in(const struct contest *c, const struct nps_host_use *use, size_t slice)
{
	uint64_t common = nps_host_grid__common(&c->ran, slice, use->start, use->end);
	double ran = *nps_host_grid__cell(&c->ran, slice, use->cpu);
	double waited = *nps_host_grid__cell(&c->waited, slice, use->cpu), own;

	if (!common || !(ran > 0) || !(waited > 0))
		return 0;
	own = (double)use->run * (double)common / (double)(use->end - use->start);
	return own / ran * NPS_MIN(ran, waited);
}

static int charge(struct contest *c)
{
	struct nps_host_walk walk = { .host = c->host };
	struct nps_host_use use;
	int err = 0;

	while (!err && nps_host_walk__next(&walk, &use)) {
		size_t first = nps_host_grid__slice(&c->ran, use.start);
		size_t last = nps_host_grid__slice(&c->ran, use.end);
		struct nps_neighbour *n;
		double contended = 0;

		if (use.cpu >= c->ran.cpus || !use.run || nps_host_samples__is_target(c->host, use.pid))
			continue;
		n = neighbour(c, use.pid);
		if (!n) {
			err = -ENOMEM;
			break;
		}
		for (size_t i = last - first > MOST_SLICES ? last - MOST_SLICES : first; i <= last; i++)
			contended += contended_in(c, &use, i);
		n->run = nps_add_sat(n->run, use.run);
		n->contended = nps_add_sat(n->contended, contended < 1e18 ? (uint64_t)contended : 0);
		c->host->waited = nps_add_sat(c->host->waited, contended < 1e18 ? (uint64_t)contended : 0);
	}
	nps_host_walk__free(&walk);
	return err ? err : walk.err;
}

static int neighbour_compare(const void *a, const void *b)
{
	const struct nps_neighbour *x = a, *y = b;

	if (x->contended != y->contended)
		return x->contended > y->contended ? -1 : 1;
	if (x->run != y->run)
		return x->run > y->run ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int nps_host_samples__contend(struct nps_host_samples *host, uint64_t begin, uint64_t end)
{
	struct contest c = { .host = host };
	size_t cpus = samples_count_cpus(host);
	int err = nps_host_grid__init(&c.waited, host->threads.dirfd, begin, end, SLICE, cpus);

	if (err)
		goto out;
	err = nps_host_grid__init(&c.ran, host->threads.dirfd, begin, end, SLICE, cpus);
	if (err)
		goto out;
	err = fill_grids(&c);
	if (err)
		goto out;
	err = charge(&c);
	if (err)
		goto out;
	if (host->neighbours.len)
		qsort(host->neighbours.data, host->neighbours.len, host->neighbours.elem, neighbour_compare);
out:
	nps_host_grid__free(&c.waited);
	nps_host_grid__free(&c.ran);
	nps_map__free(&c.row_of);
	return err;
}
