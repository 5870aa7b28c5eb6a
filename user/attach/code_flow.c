/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/code_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/work_budget.h"

#define CHARGED 256 /* instructions between two looks at the budget: some 200 us */

_Static_assert(NPS_FLOW_INSNS < NPS_FLOW_INSIDE, "indexes of instructions fit");

void nps_flow__free(struct nps_flow *flow)
{
	for (size_t i = 0; i < flow->n_parts; i++) {
		free(flow->parts[i].code);
		free(flow->parts[i].insns);
		free(flow->parts[i].marks);
	}
	free(flow->insns);
	free(flow->todo);
	free(flow->pads);
}

static int uncertain(struct nps_flow *flow, const char *why)
{
	flow->why = why;
	return -ENOENT;
}

/* Makes room for another element of a growing array of *ROOM elements, of which N are used. */
static int make_room(void **v, size_t size, size_t n, size_t *room)
{
	size_t more = *room ? 2 * *room : 64;
	void *bigger;

	if (n < *room)
		return 0;
	bigger = realloc(*v, more * size);
	if (!bigger)
		return -ENOMEM;
	*v = bigger;
	*room = more;
	return 0;
}

int nps_flow__add_part(struct nps_flow *flow, uint64_t start, uint64_t size, uint8_t *code)
{
	struct nps_flow_part *part = &flow->parts[flow->n_parts];

	if (flow->n_parts == NPS_FLOW_PARTS || size > NPS_FLOW_BYTES) {
		free(code);
		return uncertain(flow, "it is too large");
	}
	*part = (struct nps_flow_part){ start, size, code, calloc(size, sizeof(*part->insns)),
					calloc(size, 1) };
	flow->n_parts++;
	return part->insns && part->marks ? 0 : -ENOMEM;
}

struct nps_flow_part *nps_flow__part(struct nps_flow *flow, uint64_t address)
{
	for (size_t i = 0; i < flow->n_parts; i++)
		if (address - flow->parts[i].start < flow->parts[i].size)
			return &flow->parts[i];
	return NULL;
}

static int add_todo(struct nps_flow *flow, uint64_t address)
{
	if (make_room((void **)&flow->todo, sizeof(*flow->todo), flow->n_todo, &flow->room_todo))
		return -ENOMEM;
	flow->todo[flow->n_todo++] = address;
	return 0;
}

int nps_flow__add_entry(struct nps_flow *flow, uint64_t from, uint64_t address)
{
	struct nps_flow_part *part = nps_flow__part(flow, address);
	uint64_t at;
	int err = part ? 0 : flow->outside(flow, from, address, flow->arg);

	if (err)
		return err;
	if (!part)
		part = nps_flow__part(flow, address);
	if (!part)
		return uncertain(flow, "it jumps out of its code");
	at = address - part->start;
	if (part->insns[at] == NPS_FLOW_INSIDE)
		return uncertain(flow, "it jumps into the middle of an instruction");
	part->marks[at] |= NPS_FLOW_LEADER;
	return part->insns[at] ? 0 : add_todo(flow, address);
}

int nps_flow__add_pad(struct nps_flow *flow, const struct nps_landing_pad *pad)
{
	struct nps_flow_part *part;
	int err;

	if (flow->n_pads == NPS_FLOW_PADS)
		return uncertain(flow, "it has too many landing pads");
	if (make_room((void **)&flow->pads, sizeof(*flow->pads), flow->n_pads, &flow->room_pads))
		return -ENOMEM;
	flow->pads[flow->n_pads++] = *pad;
	err = nps_flow__add_entry(flow, NPS_FLOW_NOWHERE, pad->address);
	part = err ? NULL : nps_flow__part(flow, pad->address);
	if (part)
		part->marks[pad->address - part->start] |= NPS_FLOW_PAD;
	return err;
}

/* Records the instruction, unless another one shares a byte with it. */
static int add_insn(struct nps_flow *flow, struct nps_flow_part *part, const struct nps_insn *insn)
{
	uint64_t at = insn->address - part->start;

	if (flow->n_insns == NPS_FLOW_INSNS)
		return uncertain(flow, "it is too large");
	if (make_room((void **)&flow->insns, sizeof(*flow->insns), flow->n_insns, &flow->room_insns))
		return -ENOMEM;
	for (uint64_t i = 1; i < insn->size; i++) {
		if (part->insns[at + i])
			return uncertain(flow, "its instructions overlap");
		part->insns[at + i] = NPS_FLOW_INSIDE;
	}
	flow->insns[flow->n_insns++] = *insn;
	part->insns[at] = (uint16_t)flow->n_insns;
	return 0;
}

/*
 * Does a call return, after which the code would continue at AT in the part? Not at its end, nor at a landing
 * pad, which the value of a call cannot reach.
 */
static bool call_returns(const struct nps_flow_part *part, uint64_t at)
{
	return at < part->size && !(part->marks[at] & NPS_FLOW_PAD);
}

/* A jump back to its start enters the function again, but leaves it once. */
static int follow_jump(struct nps_flow *flow, const struct nps_insn *insn)
{
	if (insn->target == flow->parts[0].start)
		return uncertain(flow, "it jumps back to its start");
	return nps_flow__add_entry(flow, insn->address, insn->target);
}

/* Follows an instruction; sets *NEXT if the code continues at the next one. */
static int follow_insn(struct nps_flow *flow, const struct nps_flow_part *part, const struct nps_insn *insn,
		       bool *next)
{
	uint64_t end = insn->address + insn->size - part->start;

	*next = false;
	switch (insn->kind) {
	case NPS_INSN_CALL:
	case NPS_INSN_CALL_INDIRECT:
		*next = call_returns(part, end);
		return 0;
	case NPS_INSN_JUMP:
		return follow_jump(flow, insn);
	case NPS_INSN_BRANCH:
		*next = true;
		return follow_jump(flow, insn);
	case NPS_INSN_PLAIN:
		*next = true;
		return 0;
	case NPS_INSN_RETURN:
	case NPS_INSN_TRAP:
		return 0;
	case NPS_INSN_TAIL_CALL:
		return uncertain(flow, "it ends by a tail call");
	case NPS_INSN_JUMP_INDIRECT:
		return uncertain(flow, "it has an indirect jump");
	default:
		return uncertain(flow, "an instruction of it is not known");
	}
}

/* Follows the code from ADDRESS up to code that was followed before. */
static int follow_from(struct nps_flow *flow, uint64_t address)
{
	struct nps_flow_part *part = nps_flow__part(flow, address);
	uint64_t at = address - part->start;

	for (bool next = true; next;) {
		struct nps_insn insn;
		int err;

		if (at >= part->size)
			return uncertain(flow, "it runs beyond its end");
		if (part->insns[at] == NPS_FLOW_INSIDE)
			return uncertain(flow, "it jumps into the middle of an instruction");
		if (part->insns[at])
			return 0;
		if (flow->n_insns % CHARGED == CHARGED - 1 && nps_budget__spent(flow->budget))
			return -ETIME;
		insn = nps_insn_decoder__decode(flow->decoder, part->code + at, part->size - at,
						part->start + at);
		if (insn.kind == NPS_INSN_UNKNOWN)
			return uncertain(flow, "an instruction of it is not known");
		err = add_insn(flow, part, &insn);
		if (err)
			return err;
		err = follow_insn(flow, part, &insn, &next);
		if (err)
			return err;
		at += insn.size;
	}
	return 0;
}

/* Calls of a part of the function itself return into it: what such code returns from is not the function. */
static int check_calls(struct nps_flow *flow)
{
	for (size_t i = 0; i < flow->n_insns; i++) {
		const struct nps_insn *insn = &flow->insns[i];

		if (insn->kind == NPS_INSN_CALL && insn->target != flow->parts[0].start &&
		    nps_flow__part(flow, insn->target))
			return uncertain(flow, "it calls a part of itself");
	}
	return 0;
}

int nps_flow__run(struct nps_flow *flow)
{
	while (flow->n_todo) {
		int err = follow_from(flow, flow->todo[--flow->n_todo]);

		if (err)
			return err;
	}
	return check_calls(flow);
}

const struct nps_insn *nps_flow__insn(struct nps_flow *flow, uint64_t address)
{
	const struct nps_flow_part *part = nps_flow__part(flow, address);
	uint16_t i = part ? part->insns[address - part->start] : 0;

	return i && i != NPS_FLOW_INSIDE ? &flow->insns[i - 1] : NULL;
}

static bool continues(const struct nps_insn *insn)
{
	return insn->kind == NPS_INSN_PLAIN || insn->kind == NPS_INSN_BRANCH || insn->kind == NPS_INSN_CALL ||
	       insn->kind == NPS_INSN_CALL_INDIRECT;
}

const struct nps_insn *nps_flow__before(struct nps_flow *flow, uint64_t address)
{
	const struct nps_flow_part *part = nps_flow__part(flow, address);
	uint64_t at = part ? address - part->start : 0;

	while (at && part->insns[at - 1] == NPS_FLOW_INSIDE)
		at--;
	if (!at || !part->insns[at - 1])
		return NULL;
	at--;
	if (!continues(&flow->insns[part->insns[at] - 1]) ||
	    flow->insns[part->insns[at] - 1].size != address - part->start - at)
		return NULL;
	return &flow->insns[part->insns[at] - 1];
}

bool nps_flow__is_leader(struct nps_flow *flow, uint64_t address)
{
	const struct nps_flow_part *part = nps_flow__part(flow, address);

	return part && part->marks[address - part->start] & NPS_FLOW_LEADER;
}

/* Adds an address to a search, once. */
static int search_at(struct nps_flow *flow, uint64_t address)
{
	struct nps_flow_part *part = nps_flow__part(flow, address);
	uint8_t *marks = part ? &part->marks[address - part->start] : NULL;

	if (!marks || *marks & NPS_FLOW_SEEN)
		return 0;
	*marks |= NPS_FLOW_SEEN;
	return add_todo(flow, address);
}

/* Is any byte of the instruction in the range of calls whose exceptions continue at PAD? */
static bool is_covered(const struct nps_landing_pad *pad, const struct nps_insn *insn)
{
	return insn->address - pad->calls < pad->size ||
	       (pad->size && pad->calls - insn->address < insn->size);
}

/* Adds what follows one instruction to a search. */
static int search_after(struct nps_flow *flow, const struct nps_insn *insn)
{
	const struct nps_flow_part *part = nps_flow__part(flow, insn->address);
	uint64_t end = insn->address + insn->size;
	bool call = insn->kind == NPS_INSN_CALL || insn->kind == NPS_INSN_CALL_INDIRECT;
	int err = 0;

	if (call ? call_returns(part, end - part->start) : continues(insn))
		err = search_at(flow, end);
	if (!err && (insn->kind == NPS_INSN_JUMP || insn->kind == NPS_INSN_BRANCH))
		err = search_at(flow, insn->target);
	for (size_t i = 0; !err && i < flow->n_pads; i++)
		if (is_covered(&flow->pads[i], insn))
			err = search_at(flow, flow->pads[i].address);
	return err;
}

int nps_flow__returns(struct nps_flow *flow, uint64_t address)
{
	int err;

	for (size_t i = 0; i < flow->n_parts; i++)
		for (uint64_t k = 0; k < flow->parts[i].size; k++)
			flow->parts[i].marks[k] &= (uint8_t)~NPS_FLOW_SEEN;
	flow->n_todo = 0;
	err = search_at(flow, address);
	for (size_t n = 1; !err && flow->n_todo; n++) {
		const struct nps_insn *insn = nps_flow__insn(flow, flow->todo[--flow->n_todo]);

		if (n % CHARGED == 0 && nps_budget__spent(flow->budget))
			return -ETIME;
		if (insn && insn->kind == NPS_INSN_RETURN)
			return 1;
		if (insn)
			err = search_after(flow, insn);
	}
	return err;
}
