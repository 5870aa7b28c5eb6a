/* SPDX-License-Identifier: BSD-2-Clause */
/* aclnn operators: their rows, and the names of the kernels they launch. */
#include "import/session/nest_walk.h"
#include "schema/tables.h"

#include <errno.h>
#include <stdio.h>

/* --- operators, of some of which only the beginnings are seen --- */

/* What encloses the moment and began within the operator is within it to its own end. */
void nps_walk__extend_op(struct nps_walk *w, uint64_t until)
{
	struct nps_cann *row;

	if (w->op_row == NPS_NONE)
		return;
	row = &NPS_AT(&w->proc->cann, struct nps_cann, w->op_row);
	for (int i = w->depth - 1; i >= 0 && w->stack[i].ev->start >= row->start; i--)
		until = NPS_MAX(until, w->stack[i].end);
	row->end = NPS_MAX(row->end, NPS_MIN(until, w->op_limit));
}

void nps_walk__enter_run(struct nps_walk *w, struct nps_op_run *run, uint64_t at)
{
	if (w->run)
		w->run->end = at;
	w->run = run;
	if (run)
		run->end = UINT64_MAX;
}

/* Keeps the operator that the next one is in, if that is known. */
static void keep_outer(struct nps_walk *w, uint64_t now)
{
	if (w->op_row == NPS_NONE || w->op_limit == UINT64_MAX || w->op_limit < now ||
	    NPS_AT(&w->proc->cann, struct nps_cann, w->op_row).ending != NPS_ENDING_SEEN ||
	    w->outer_ops == NPS_WALK_OPS)
		return;
	w->outer[w->outer_ops++] = (struct nps_outer_op){ .row = w->op_row,
							  .phase2 = w->op_phase2,
							  .limit = w->op_limit,
							  .run = w->run,
							  .l0 = w->l0,
							  .l0_used = w->l0_used };
}

void nps_walk__close_op(struct nps_walk *w)
{
	uint64_t end = w->op_limit;
	const struct nps_outer_op *outer;

	w->op_row = NPS_NONE;
	w->op_limit = UINT64_MAX;
	if (!w->outer_ops) {
		nps_walk__enter_run(w, NULL, end);
		return;
	}
	outer = &w->outer[--w->outer_ops];
	w->op_row = outer->row;
	w->op_phase2 = outer->phase2;
	w->op_limit = outer->limit;
	if (w->run == outer->run)
		return;
	nps_walk__enter_run(w, outer->run, end);
	w->l0 = outer->l0;
	w->l0_used = outer->l0_used;
}

static int open_op(struct nps_walk *w, const struct nps_event *ev, bool phase2)
{
	uint64_t id;
	uint32_t name = nps_event_arg(ev, NPS_M_NAME, &id) ? nps_session__text(w->model, id) : NPS_NONE;
	struct nps_cann *row;

	if (name == NPS_NONE)
		name = nps_strings__addz(&w->model->strings, "aclnn(name lost)");
	else if (!phase2)
		name = nps_strings__addf(&w->model->strings, "%sGetWorkspaceSize",
					 nps_strings__get(&w->model->strings, name));
	keep_outer(w, ev->start);
	row = nps_walk__row(w, ev->start, ev->start + ev->dur, NPS_LAYER_ACL, name);
	if (!row)
		return -ENOMEM;
	row->ending = ev->dur ? NPS_ENDING_SEEN : NPS_ENDING_LOWER_BOUND;
	w->op_row = nps_walk__last_row(w);
	w->op_phase2 = phase2;
	w->op_limit = w->depth ? w->stack[w->depth - 1].end : UINT64_MAX;
	if (ev->dur)
		w->op_limit = NPS_MIN(w->op_limit, ev->start + ev->dur);
	if (w->outer_ops) /* without an end of its own it is over when that is */
		w->op_limit = NPS_MIN(w->op_limit, w->outer[w->outer_ops - 1].limit);
	nps_walk__enter_run(w, NULL, ev->start);
	return 0;
}

/*
 * A second phase inside another one, before anything was launched: the operator is made of that one, whose
 * executor it runs.
 */
static bool continues(const struct nps_walk *w, const struct nps_op_run *run, const struct nps_op_run *outer)
{
	return outer && run != outer && run->executor == outer->executor && !run->count && outer->count &&
	       w->l0 == outer->first;
}

static void begin_run(struct nps_walk *w, const struct nps_event *ev, const struct nps_op_run *outer)
{
	uint64_t run = ev->call.slot[NPS_RUN_SLOT];
	bool known = run && run <= w->names->runs.len;

	nps_walk__enter_run(w, known ? &NPS_AT(&w->names->runs, struct nps_op_run, run - 1) : NULL,
			    ev->start);
	if (w->run && continues(w, w->run, outer)) {
		w->run->first = outer->first;
		w->run->count = outer->count;
		w->run->operands = outer->operands;
		w->run->opened = outer->opened;
		w->run->bound = outer->bound;
		w->run->since = outer->since;
		w->run->planner = outer->planner;
	}
	if (w->run != outer || !outer)
		w->l0 = w->run ? w->run->first : NPS_NONE;
	w->l0_used = 0;
}

int nps_walk__mark(struct nps_walk *w, const struct nps_event *ev)
{
	const struct nps_probe_info *info = nps_probe_info(ev->probe);
	const struct nps_op_run *outer = w->run;
	int err;

	switch (ev->probe) {
	case NPS_PROBE_NN_PHASE1:
		return open_op(w, ev, false);
	case NPS_PROBE_NN_PHASE2:
	case NPS_PROBE_NN_EXPORT:
		err = open_op(w, ev, true);
		begin_run(w, ev, outer);
		return err;
	case NPS_PROBE_NN_L0:
		nps_walk__enter_run(w, NULL, ev->start);
		if (!w->op_phase2)
			nps_walk__extend_op(w, ev->start);
		return 0;
	case NPS_PROBE_NN_RUN:
		begin_run(w, ev, outer);
		if (w->op_phase2)
			nps_walk__extend_op(w, ev->start);
		return 0;
	case NPS_PROBE_NN_PHASE1_LEFT:
	case NPS_PROBE_NN_PHASE2_LEFT:
		return 0; /* op_ends.h */
	}
	return info ? nps_walk__mstx(w, ev, info->call) : 0;
}

/* --- names of kernels --- */

static uint32_t op_text(struct nps_walk *w, uint32_t api, uint32_t l0)
{
	char text[512];

	snprintf(text, sizeof(text), "%s_%s", nps_strings__get(&w->model->strings, api),
		 nps_strings__get(&w->model->strings, l0));
	return nps_strings__addz(&w->model->strings, text);
}

/* Names the kernel of launch EV: the run's next L0 operator, else as it was registered. */
int nps_walk__name_launch(struct nps_walk *w, const struct nps_event *ev, struct nps_frame *frame)
{
	uint64_t key;
	uint32_t l0 = w->run ? w->l0 : NPS_NONE;

	w->learn_later = false;
	if (!nps_names__handle(ev, &w->handle, &frame->name, w->model)) {
		frame->type = frame->name;
	} else if (w->handle) {
		frame->name = nps_names__kernel(w->names, w->proc_row, w->handle, ev->start);
		frame->type = frame->name;
	}
	frame->function = frame->name;
	if (!w->run || w->run->api == NPS_NONE)
		return 0;
	w->api = w->run->api;
	key = nps_names__key(w->proc_row, w->handle);
	if (l0 != NPS_NONE) {
		const struct nps_l0 *node = &NPS_AT(&w->names->l0s, struct nps_l0, l0);

		w->l0 = node->next;
		frame->run = w->run - (struct nps_op_run *)w->names->runs.data;
		if (node->text == NPS_NONE)
			return 0;
		frame->type = node->text;
		frame->name = op_text(w, w->run->api, node->text);
		nps_walk__extend_op(w, frame->end);
		return w->handle ? nps_map__put(&w->names->learned, key, node->text) : 0;
	}
	w->learn_later = !w->run->count && w->handle;
	if (w->learn_later)
		frame->run = w->run - (struct nps_op_run *)w->names->runs.data;
	return 0;
}

/* Operators whose L0 operators ran before the capture: named by later launches of their handles. */
void nps_walk__name_pending(struct nps_walk *w)
{
	for (size_t i = 0; i < w->pending.len; i++) {
		const struct nps_pending_name *p = &NPS_AT(&w->pending, struct nps_pending_name, i);
		uint32_t l0 = nps_map__get(&w->names->learned, nps_names__key(p->proc, p->handle));
		struct nps_sub *sub = &NPS_AT(&w->model->subs, struct nps_sub, p->sub);

		if (l0 == NPS_NONE)
			continue;
		sub->type = l0;
		sub->name = op_text(w, p->api, l0);
		NPS_AT(&w->model->procs[p->proc].cann, struct nps_cann, p->cann).item = sub->name;
	}
}
