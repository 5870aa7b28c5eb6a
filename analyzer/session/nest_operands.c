/* SPDX-License-Identifier: BSD-2-Clause */
/* --record-shapes: which kernels get their operator's tensors. */
#include "session/nest_walk.h"

/* Operators of which a run launched nothing: what follows such a run need not be theirs. */
static int idle_operators(const struct nps_names *names, struct nps_map *idle)
{
	int err = 0;

	for (size_t i = 0; !err && i < names->runs.len; i++) {
		const struct nps_op_run *run = &NPS_AT(&names->runs, struct nps_op_run, i);

		if (!run->launches && !run->cut)
			err = nps_map__put(idle, nps_names__key(run->proc, run->api), 1);
	}
	return err;
}

/*
 * Was something lost while the first phase told its arguments and its executor, or from then on until the run? The
 * arguments may be an older first phase's, or the executor that of a later one, at the same address.
 */
static bool is_doubtful(const struct nps_names *names, const struct nps_op_run *run)
{
	return nps_doubts__in(&names->doubts, run->proc, run->opened, run->bound) ||
	       nps_doubts__in(&names->doubts, run->proc, run->since, run->begin);
}

/*
 * The operator's tensors, if they are the kernel's: of several kernels it is not seen what each is given. Where the L0
 * operators are not known the one kernel that followed is the operator's if that has always one.
 */
static uint32_t operands_of(const struct nps_names *names, const struct nps_op_run *run,
			    const struct nps_map *idle)
{
	if (run->operands == NPS_NONE || run->launches != 1 || run->count > 1)
		return NPS_NONE;
	if (!run->count && nps_map__get(idle, nps_names__key(run->proc, run->api)) != NPS_NONE)
		return NPS_NONE;
	return is_doubtful(names, run) ? NPS_NONE : run->operands;
}

int nps_walk__give_operands(struct nps_walk *w)
{
	struct nps_map idle = { 0 };
	int err = idle_operators(w->names, &idle);

	for (size_t i = 0; i < w->model->subs.len; i++) {
		struct nps_sub *sub = &NPS_AT(&w->model->subs, struct nps_sub, i);
		uint32_t run = sub->run;

		sub->run = run == NPS_NONE || err
				   ? NPS_NONE
				   : operands_of(w->names, &NPS_AT(&w->names->runs, struct nps_op_run, run),
						 &idle);
	}
	nps_map__free(&idle);
	return err;
}
