/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control flow of one function: every instruction that is reached from its entries, in all of its parts.
 * It ends where it is not certain what is code. Nothing is executed, and the work is limited.
 */
#ifndef NPS_CODE_FLOW_H
#define NPS_CODE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/code_insn.h"
#include "attach/landing_pads.h"

struct nps_budget;

#define NPS_FLOW_PARTS 8 /* of one function */
#define NPS_FLOW_INSNS 20000 /* instructions of one function */
#define NPS_FLOW_BYTES (256UL << 10) /* of one part */
#define NPS_FLOW_PADS 4096 /* ranges of calls with landing pads */

/* A range of code with one frame description. */
struct nps_flow_part {
	uint64_t start, size;
	uint8_t *code;
	/* For each byte: index of the instruction that begins there, plus 1; NPS_FLOW_INSIDE, 0: none. */
	uint16_t *insns;
	uint8_t *marks; /* for each byte: NPS_FLOW_* */
};

#define NPS_FLOW_INSIDE UINT16_MAX /* within an instruction */
#define NPS_FLOW_LEADER 1 /* a branch, an entry or an exception leads to it */
#define NPS_FLOW_PAD 2 /* a landing pad: a call before it does not return */
#define NPS_FLOW_SEEN 4 /* for a search */

struct nps_flow {
	const struct nps_insn_decoder *decoder;
	struct nps_budget *budget;
	/*
	 * Called with a branch to an address that is in none of the parts. 0: it was put into a new part
	 * (nps_flow__add_part); -ENOENT: it is none of this function, `why` was set; other errors.
	 */
	int (*outside)(struct nps_flow *flow, uint64_t from, uint64_t to, void *arg);
	void *arg;
	const char *why; /* after -ENOENT: the reason, a static phrase */

	struct nps_flow_part parts[NPS_FLOW_PARTS];
	size_t n_parts;
	struct nps_insn *insns;
	size_t n_insns, room_insns;
	uint64_t *todo; /* addresses that are still to be followed */
	size_t n_todo, room_todo;
	struct nps_landing_pad *pads;
	size_t n_pads, room_pads;
};

/* All memory of FLOW, which the caller initialised with zeros. */
void nps_flow__free(struct nps_flow *flow);

/*
 * Adds a part, whose CODE becomes the flow's. The first one begins where the function does. 0, -ENOMEM;
 * -ENOENT: there are too many, or it is too large, `why` is set.
 */
int nps_flow__add_part(struct nps_flow *flow, uint64_t start, uint64_t size, uint8_t *code);

/*
 * Adds an address where code is entered, from the instruction at FROM; it can call outside(). 0 and errors as
 * of nps_flow__run.
 */
int nps_flow__add_entry(struct nps_flow *flow, uint64_t from, uint64_t address);
#define NPS_FLOW_NOWHERE UINT64_MAX /* from: an exception, or a call of the function */

/* Adds a landing pad, also as an entry. All pads of a part are added when the part is. */
int nps_flow__add_pad(struct nps_flow *flow, const struct nps_landing_pad *pad);

/*
 * Follows the code from all entries. 0; -ENOENT: its flow is not certain, `why` is set; -ENOMEM; -ETIME: the
 * budget is spent.
 */
int nps_flow__run(struct nps_flow *flow);

/* The part that contains ADDRESS, NULL: none. */
struct nps_flow_part *nps_flow__part(struct nps_flow *flow, uint64_t address);
/* The instruction that begins at ADDRESS, NULL: none. */
const struct nps_insn *nps_flow__insn(struct nps_flow *flow, uint64_t address);
/* The instruction that ends at ADDRESS, in the same part, and continues there; NULL: none. */
const struct nps_insn *nps_flow__before(struct nps_flow *flow, uint64_t address);
bool nps_flow__is_leader(struct nps_flow *flow, uint64_t address);

/* Is any return reached from ADDRESS, also by exceptions that are caught? 0, 1, -ENOMEM, -ETIME. */
int nps_flow__returns(struct nps_flow *flow, uint64_t address);

#endif
