/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What PyTorch's allocators did, as tables. Each event is a row of `memory_record`; the caching allocator's
 * (PTA) and CANN's (GE) are each followed by their sum. Each allocation is a row of `op_memory`, behind them
 * come those of CANN's own operators.
 */
#ifndef NPS_TORCH_MEMORY_H
#define NPS_TORCH_MEMORY_H

#include "base/ext_sort.h"
#include "import/common/torch_owner.h"

#define NPS_MEMORY_DEVICES 256

enum nps_memory_event_kind { NPS_ALLOCATED, NPS_RELEASED, NPS_BLOCK_RELEASED, NPS_MEMORY_EVENT_KINDS };

/* Bytes of a device after an event, NPS_NULL unknown. */
struct nps_memory_levels {
	int64_t allocated, reserved, active, stream;
};

struct nps_memory_event {
	struct nps_sort_key order; /* Unix ns; what orders events of the same time */
	uint64_t ptr, gtid;
	int64_t size; /* bytes, NPS_NULL unknown */
	struct nps_memory_levels levels;
	uint8_t device, component,
		kind; /* component: 0 caching allocator, 1 workspaces; nps_memory_event_kind */
};

struct nps_torch_memory {
	struct nps_model *m;
	struct nps_ext_sort events; /* struct nps_memory_event */
	struct nps_torch_owner owner;
	struct nps_map live; /* address and device -> row of op_memory */
	uint32_t pta, sum, workspace, empty; /* texts */
	struct nps_memory_levels of_pta[NPS_MEMORY_DEVICES], of_ge[NPS_MEMORY_DEVICES];
	size_t ge; /* CANN's next row */
	struct nps_vec open; /* uint8_t: row i of CANN's was allocated and not released */
	bool with_stacks; /* fill op_memory_stack, too */
	uint64_t forgotten; /* allocations that were not followed to their release: too many are in use */
};

/* Rows [FIRST_OP, END_OPS) of the model's `torch` are operators by start, outer ones first. */
void nps_torch_memory__init(struct nps_torch_memory *memory, struct nps_model *model, size_t first_op,
			    size_t end_ops);
void nps_torch_memory__free(struct nps_torch_memory *memory);

/* A new event, to be filled; NULL: memory->events.err. */
struct nps_memory_event *nps_torch_memory__add(struct nps_torch_memory *memory);

/*
 * Fills both tables from all events. An allocation's name is that of the innermost operator that its thread
 * was in; its release, and that of its block, are the next ones of its address, blank where the events have
 * none. 0 or negative errno.
 */
int nps_torch_memory__fill(struct nps_torch_memory *memory);

#endif
