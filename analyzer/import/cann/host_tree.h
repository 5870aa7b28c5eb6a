/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that are open while the host's records are walked in order of time, thread by thread, and what
 * was recorded inside them (prof-raw 4.1).
 */
#ifndef NPS_CANN_HOST_TREE_H
#define NPS_CANN_HOST_TREE_H

#include "import/cann/batches.h"
#include "import/cann/host_records.h"

#define NPS_ACL_MODES 12

/* A record that belongs to a call. */
struct nps_host_info {
	uint32_t next; /* in the pool; NPS_NONE: last */
	uint8_t kind; /* enum nps_host_kind */
	union {
		struct nps_host_event event; /* but for launches */
		struct {
			struct nps_host_launch track;
			uint32_t row; /* of capture->launches */
		} launch;
	};
};

struct nps_open_call {
	uint64_t begin, end, item;
	uint32_t below; /* the call of this thread that was open before, or next free one */
	uint32_t tid, type, connection;
	uint32_t model; /* id, NPS_NO_ID: none */
	uint32_t node, comm; /* innermost NODE and HCCL call around it, itself included; NPS_NONE: none */
	uint32_t launches, last_launch; /* in the pool */
	uint32_t infos, last_info;
	uint32_t collective; /* row of collectives, NPS_NONE: has none */
	uint16_t level;
	bool loads; /* a graph, or is within a call that does */
};

/* Task types of the runtime, as they are named. */
struct nps_launch_type {
	uint32_t text;
	uint32_t core; /* text of what it runs on, NPS_NONE: the type does not decide it */
	uint8_t kind; /* enum nps_launch_kind */
	bool kernel; /* even without an operator's call */
};

struct nps_call_thread {
	uint32_t tid, top; /* innermost call */
	uint32_t depth;
	/* Copies and their sizes are separate records; both belong to the same call. */
	uint32_t copies[8], ncopies; /* launches without size */
	bool sized; /* a size without launch */
	uint64_t bytes;
	uint16_t operation;
	uint32_t inside; /* connection of the innermost call then */
};

struct nps_host_tree {
	struct nps_cann_capture *capture;
	struct nps_host_records records;
	struct nps_vec threads, calls, infos; /* the pools */
	struct nps_map thread_of;
	uint32_t free_call, free_info;
	struct nps_vec launch_types; /* struct nps_launch_type */
	struct nps_map launch_type_of;
	struct nps_batches batches;
	uint32_t acl_modes[NPS_ACL_MODES];
	uint32_t record_event, stream_wait; /* names of the two calls that may be within others */
	uint32_t master_type; /* of HCCL calls on the plane that decides */
	uint32_t core_names[12];
	uint32_t connections; /* calls so far */
	uint64_t outside, deep, unshown; /* losses */
	uint32_t launch_steps, task_steps, kernel_steps, part_steps;

	struct nps_desc *descs; /* of the node that is being closed */
	size_t ndescs, desc_room;
	struct nps_map desc_of;
};

static inline struct nps_open_call *nps_call(const struct nps_host_tree *tree, uint32_t call)
{
	return &NPS_AT(&tree->calls, struct nps_open_call, call);
}

static inline struct nps_host_info *nps_info(const struct nps_host_tree *tree, uint32_t info)
{
	return &NPS_AT(&tree->infos, struct nps_host_info, info);
}

/* host_node.c: what a NODE or an HCCL call meant, once it has ended. */
void nps_host_tree__end_node(struct nps_host_tree *tree, const struct nps_open_call *call);
void nps_host_tree__end_comm(struct nps_host_tree *tree, const struct nps_open_call *call);
void nps_host_tree__free_descs(struct nps_host_tree *tree);

/* A launch that is no part of a NODE or HCCL call. */
void nps_host_tree__bare_launch(struct nps_host_tree *tree, const struct nps_host_launch *track, uint32_t row,
				const struct nps_launch_type *type);

#endif
