/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/host_grid.h"

#include <errno.h>

#define MOST_CELLS (16UL << 20)
#define MOST_SLICES 4096 /* of one use: looks at what uses CPU are never that far apart */

int nps_host_grid__init(struct nps_host_grid *grid, int tmpfd, uint64_t begin, uint64_t end, uint64_t slice,
			size_t cpus)
{
	uint64_t span = end > begin ? end - begin : 1;

	*grid = (struct nps_host_grid){ .begin = begin, .end = begin + span, .slice = slice, .cpus = cpus };
	nps_vec__init(&grid->cells, tmpfd, sizeof(float));
	while ((span / grid->slice + 1) * cpus > MOST_CELLS)
		grid->slice *= 2;
	grid->slices = span / grid->slice + 1;
	return nps_vec__resize(&grid->cells, grid->slices * cpus);
}

void nps_host_grid__free(struct nps_host_grid *grid)
{
	nps_vec__free(&grid->cells);
}

uint64_t nps_host_grid__common(const struct nps_host_grid *grid, size_t slice, uint64_t start, uint64_t end)
{
	uint64_t from = grid->begin + slice * grid->slice, to = NPS_MIN(from + grid->slice, grid->end);

	from = NPS_MAX(from, start);
	to = NPS_MIN(to, end);
	return to > from ? to - from : 0;
}

void nps_host_grid__add(struct nps_host_grid *grid, uint64_t start, uint64_t end, uint32_t cpu, uint64_t ns)
{
	size_t first = nps_host_grid__slice(grid, start), last = nps_host_grid__slice(grid, end);

	if (cpu >= grid->cpus || end <= start || !ns || end <= grid->begin || start >= grid->end)
		return;
	if (last - first > MOST_SLICES) {
		first = last - MOST_SLICES;
		start = grid->begin + first * grid->slice;
	}
	for (size_t i = first; i <= last; i++)
		*nps_host_grid__cell(grid, i, cpu) +=
			(float)((double)ns * (double)nps_host_grid__common(grid, i, start, end) /
				(double)(end - start));
}

bool nps_host_walk__next(struct nps_host_walk *walk, struct nps_host_use *use)
{
	const struct nps_vec *threads = &walk->host->threads;

	while (!walk->err && walk->at < threads->len) {
		const struct nps_host_thread *now = &NPS_AT(threads, struct nps_host_thread, walk->at), *was;
		uint32_t row = nps_map__get(&walk->before, now->tid);

		walk->err = nps_map__put(&walk->before, now->tid, walk->at++);
		if (row == NPS_NONE)
			continue;
		was = &NPS_AT(threads, struct nps_host_thread, row);
		/* Numbers that fall are another thread's: the number was used again. */
		if (was->pid != now->pid || now->time <= was->time || now->run < was->run ||
		    now->wait < was->wait)
			continue;
		*use = (struct nps_host_use){ .start = was->time,
					      .end = now->time,
					      .run = now->run - was->run,
					      .wait = now->wait - was->wait,
					      .switches = now->switches > was->switches
								  ? now->switches - was->switches
								  : 0,
					      .pid = now->pid,
					      .tid = now->tid,
					      .cpu = now->cpu };
		return true;
	}
	return false;
}

void nps_host_walk__free(struct nps_host_walk *walk)
{
	nps_map__free(&walk->before);
}
