/* SPDX-License-Identifier: BSD-2-Clause */
/* --record-shapes: which kernels get their operator's tensors. */
#include "import/session/loss_intervals.h"
#include "import/session/nest_walk.h"

#include <errno.h>
#include <stdlib.h>

struct giving {
	struct nps_session *model;
	const struct nps_names *names;
	uint64_t *first; /* by process: when its first submission was seen */
	struct nps_map idle; /* operators of which a run launched nothing */
	bool lost; /* calls, submissions or marks were */
	struct nps_loss_intervals gaps; /* if so, of the numbers of streams' tasks */
};

/*
 * Probes are attached to one library after the other, and to a process that is found late after the begin
 * of the capture: so marks are recorded before launches are.
 */
static int find_first(struct giving *g)
{
	g->first = calloc(g->model->nprocs + 1, sizeof(*g->first));
	if (!g->first)
		return -ENOMEM;
	for (size_t i = 0; i < g->model->subs.len; i++) {
		const struct nps_sub *sub = &NPS_AT(&g->model->subs, struct nps_sub, i);

		if (!g->first[sub->proc] || sub->begin < g->first[sub->proc])
			g->first[sub->proc] = sub->begin;
	}
	return 0;
}

/* Would everything that the run launched have been seen? */
static bool seen_whole(const struct giving *g, const struct nps_op_run *run)
{
	return run->begin >= g->model->begin && run->begin >= g->first[run->proc] && run->end < g->model->end;
}

/*
 * Finds operators of which a run launched nothing: the kernel after another run of theirs need not be
 * theirs either. Only runs that were observed as a whole count: what the last run of a thread launched may
 * come after the capture.
 */
static int idle_operators(struct giving *g)
{
	int err = 0;

	for (size_t i = 0; !err && i < g->names->runs.len; i++) {
		const struct nps_op_run *run = &NPS_AT(&g->names->runs, struct nps_op_run, i);

		if (!run->launches && !run->strays && seen_whole(g, run))
			err = nps_map__put(&g->idle, nps_names__key(run->proc, run->api), 1);
	}
	return err;
}

/* --- lost launches --- */

/* Those of a capture that was cut short were not all counted. */
static bool lost_launches(const struct nps_session *model)
{
	const struct nps_losses *losses = &model->losses;

	return losses->ring[NPS_EV_API] || losses->ring[NPS_EV_SQE] || losses->ring[NPS_EV_MARK] ||
	       losses->sqe || losses->cut;
}

/* Whose tasks have consecutive numbers: a stream's, but on a 950 those of all streams together. */
static uint64_t numbered_with(const struct nps_session *model, const struct nps_sub *sub)
{
	const struct nps_device *device = &model->devices[sub->device];
	bool together = device->has_platform &&
			(device->platform == NPS_CHIP_950 || device->platform == NPS_CHIP_950_1);

	return (uint64_t)sub->proc << 32 | (uint64_t)sub->device << 16 | (together ? 0 : sub->stream);
}

/* Rows of the submissions by stream and time, with room to sort them. */
static int operands_sort_subs(const struct nps_session *model, struct nps_vec *keys)
{
	size_t n = model->subs.len;
	struct nps_map streams = { 0 };
	int err = nps_vec__resize(keys, 2 * n);
	struct nps_key *key = keys->data;
	uint32_t nstreams = 0;

	for (size_t i = 0; !err && i < n; i++) {
		const struct nps_sub *sub = &NPS_AT(&model->subs, struct nps_sub, i);
		uint64_t stream = numbered_with(model, sub);
		uint32_t group = nps_map__get(&streams, stream);

		if (group == NPS_NONE) {
			group = nstreams++;
			err = nps_map__put(&streams, stream, group);
		}
		key[i] = (struct nps_key){ .key = sub->begin, .row = i, .group = group };
	}
	if (!err && n) {
		nps_sort_keys(key, key + n, n);
		nps_sort_groups(key, key + n, n);
	}
	nps_map__free(&streams);
	return err;
}

/*
 * N submissions to a stream. What is missing between two of them was submitted between them. Before the
 * first one and behind the last one it is not known what is missing: a run that can have launched it has no
 * kernel of its own here.
 */
static int inspect_stream(struct giving *g, const struct nps_key *keys, size_t n)
{
	struct nps_sub *subs = g->model->subs.data;
	uint64_t first = subs[keys[0].row].begin, last = subs[keys[n - 1].row].begin;
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		struct nps_sub *sub = &subs[keys[i].row];
		const struct nps_sub *before = i ? &subs[keys[i - 1].row] : NULL;
		const struct nps_op_run *run;

		if (before && (uint16_t)(sub->task - before->task) != 1)
			err = nps_loss_intervals__add(&g->gaps, sub->proc, before->begin, sub->end);
		if (sub->run == NPS_NONE)
			continue;
		run = &NPS_AT(&g->names->runs, struct nps_op_run, sub->run);
		if (run->begin <= first || run->end > last)
			sub->run = NPS_NONE;
	}
	return err;
}

static int inspect_streams(struct giving *g)
{
	size_t n = g->model->subs.len, next;
	const struct nps_key *key;
	struct nps_vec keys;
	int err;

	nps_vec__init(&keys, g->model->tmpfd, sizeof(struct nps_key));
	err = operands_sort_subs(g->model, &keys);
	key = keys.data;
	for (size_t i = 0; !err && i < n; i = next) {
		for (next = i + 1; next < n && key[next].group == key[i].group; next++)
			;
		err = inspect_stream(g, key + i, next - i);
	}
	nps_vec__free(&keys);
	return err ? err : nps_loss_intervals__finish(&g->gaps);
}

/* --- who gets what --- */

/*
 * Was something lost while the arguments and the executor of the first phase were recorded, or from then on
 * until the run? The arguments may be an older first phase's, or the executor that of a later one, at the
 * same address. And was something that the run launched lost? The kernel that was seen may be one of
 * several, or a kernel of the job itself.
 */
static bool is_doubtful(const struct giving *g, const struct nps_op_run *run)
{
	const struct nps_loss_intervals *intervals = &g->names->loss_intervals;

	return nps_loss_intervals__overlap(intervals, run->proc, run->opened, run->bound) ||
	       nps_loss_intervals__overlap(intervals, run->proc, run->since, run->begin) ||
	       (g->lost &&
		(run->strays || nps_loss_intervals__overlap(&g->gaps, run->proc, run->begin, run->end)));
}

/*
 * The operator's tensors, if they are the kernel's: of several kernels the tensors of each are not known.
 * Where the L0 operators are not known, the one kernel that followed is the operator's if the operator
 * always has one, if no kernel came that may be its second one, and if neither the capture nor the process
 * began or ended in between.
 */
static uint32_t operands_of(const struct giving *g, const struct nps_op_run *run)
{
	if (run->operands == NPS_NONE || run->launches != 1 || run->count > 1)
		return NPS_NONE;
	if (!run->count && (run->strays || !seen_whole(g, run) ||
			    nps_map__get(&g->idle, nps_names__key(run->proc, run->api)) != NPS_NONE))
		return NPS_NONE;
	return is_doubtful(g, run) ? NPS_NONE : run->operands;
}

int nps_walk__assign_operands(struct nps_walk *w)
{
	bool shapes = w->model->tensors.lists.len;
	struct giving g = { .model = w->model, .names = w->names, .lost = shapes && lost_launches(w->model) };
	int err = shapes ? find_first(&g) : 0;

	if (!err && shapes)
		err = idle_operators(&g);
	nps_loss_intervals__init(&g.gaps, w->model->tmpfd);
	if (!err && g.lost)
		err = inspect_streams(&g);
	for (size_t i = 0; i < w->model->subs.len; i++) {
		struct nps_sub *sub = &NPS_AT(&w->model->subs, struct nps_sub, i);

		if (err)
			sub->run = NPS_NONE;
		else if (sub->run != NPS_NONE)
			sub->run = operands_of(&g, &NPS_AT(&w->names->runs, struct nps_op_run, sub->run));
	}
	nps_loss_intervals__free(&g.gaps);
	nps_map__free(&g.idle);
	free(g.first);
	return err;
}
