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
 * The operator's tensors, if they are the kernel's: of several kernels it is not seen what each is given. Where the L0
 * operators are not known the one kernel that followed is the operator's if that has always one.
 */
static uint32_t operands_of(const struct nps_op_run *run, const struct nps_map *idle)
{
	if (run->launches != 1 || run->count > 1)
		return NPS_NONE;
	if (!run->count && nps_map__get(idle, nps_names__key(run->proc, run->api)) != NPS_NONE)
		return NPS_NONE;
	return run->operands;
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
				   : operands_of(&NPS_AT(&w->names->runs, struct nps_op_run, run), &idle);
	}
	nps_map__free(&idle);
	return err;
}
