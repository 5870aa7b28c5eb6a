/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/op_ends.h"

#include "import/session/catalog_info.h"

#define DEPTH 32 /* operators within operators; real ones are two or three deep */

enum phase { NO_PHASE, FIRST_PHASE, SECOND_PHASE };

struct open_ops {
	struct {
		struct nps_event *begin;
		uint32_t name;
		enum phase phase;
	} v[DEPTH];
	unsigned n;
};

static enum phase begun_phase(const struct nps_event *ev)
{
	switch (ev->probe) {
	case NPS_PROBE_NN_PHASE1:
		return FIRST_PHASE;
	case NPS_PROBE_NN_PHASE2:
	case NPS_PROBE_NN_EXPORT:
		return SECOND_PHASE;
	}
	return NO_PHASE;
}

static enum phase ended_phase(const struct nps_event *ev)
{
	switch (ev->probe) {
	case NPS_PROBE_NN_PHASE1_LEFT:
		return FIRST_PHASE;
	case NPS_PROBE_NN_PHASE2_LEFT:
		return SECOND_PHASE;
	}
	return NO_PHASE;
}

static uint32_t marked_operator(struct nps_session *model, const struct nps_event *ev)
{
	uint64_t id;

	return nps_event_arg(ev, NPS_M_NAME, &id) ? nps_session__text(model, id) : NPS_NONE;
}

static void op_begins(struct open_ops *open, struct nps_event *ev, uint32_t name, enum phase phase)
{
	ev->dur = 0;
	if (open->n == DEPTH) {
		/* The outermost ones were left by exceptions, or there is no real one so deep. */
		for (unsigned i = 1; i < DEPTH; i++)
			open->v[i - 1] = open->v[i];
		open->n--;
	}
	open->v[open->n].begin = ev;
	open->v[open->n].name = name;
	open->v[open->n++].phase = phase;
}

/* The innermost operator of that name ends; those within it were left without an end. */
static void op_ends(struct open_ops *open, const struct nps_event *ev, uint32_t name, enum phase phase)
{
	unsigned i = open->n;

	while (i && (open->v[i - 1].phase != phase || open->v[i - 1].name != name))
		i--;
	if (!i)
		return; /* it began before the capture */
	open->v[i - 1].begin->dur = ev->start - open->v[i - 1].begin->start;
	open->n = i - 1;
}

void nps_op_ends__find(struct nps_session *model, const struct nps_vec *keys)
{
	struct open_ops open = { .n = 0 };
	uint32_t thread = NPS_NONE;

	for (size_t i = 0; i < keys->len; i++) {
		const struct nps_key *key = &NPS_AT(keys, struct nps_key, i);
		struct nps_event *ev = &NPS_AT(&model->events, struct nps_event, key->row);
		enum phase begins, ends;

		if (key->group != thread)
			open.n = 0;
		thread = key->group;
		if (ev->kind != NPS_EV_MARK)
			continue;
		begins = begun_phase(ev);
		ends = ended_phase(ev);
		if (begins != NO_PHASE)
			op_begins(&open, ev, marked_operator(model, ev), begins);
		else if (ends != NO_PHASE)
			op_ends(&open, ev, marked_operator(model, ev), ends);
	}
}
