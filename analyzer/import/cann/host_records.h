/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's records, all files and threads, in order of time. */
#ifndef NPS_CANN_HOST_RECORDS_H
#define NPS_CANN_HOST_RECORDS_H

#include "import/cann/capture.h"

/*
 * Kinds of records in the order in which they count at the same time: a record belongs to the call that
 * ends then, not to one that begins (prof-raw 4.1), and a task is of the batch before a flip of the same
 * time (4.3).
 */
enum nps_host_kind {
	NPS_HOST_LAUNCH,
	NPS_HOST_COPY,
	NPS_HOST_FLIP,
	NPS_HOST_NODE,
	NPS_HOST_TENSORS,
	NPS_HOST_ATTRIBUTES,
	NPS_HOST_CONTEXTS,
	NPS_HOST_COMM_OP,
	NPS_HOST_COMM_PART,
	NPS_HOST_FUSION,
	NPS_HOST_CALL
};

struct nps_host_launch {
	uint64_t kernel; /* hash */
	uint32_t tid, stream, task, type;
	uint16_t device, blocks;
	uint8_t ratio;
};

struct nps_host_event {
	struct nps_sort_key
		key; /* high: host counter; low: kind in the upper 8 bits, then what makes an order */
	union {
		struct {
			uint64_t end, item;
			uint32_t tid, type;
			uint32_t request; /* distinguishes calls from a record that is repeated */
			uint16_t level;
		} call;
		struct nps_host_launch launch; /* of flips too */
		struct {
			uint64_t name, type;
			uint32_t tid, core, blocks;
			uint8_t hf32, state;
		} node;
		struct {
			uint64_t name;
			uint32_t tid, list;
		} tensors;
		struct {
			uint64_t name, attributes;
			uint32_t tid;
		} attributes;
		struct {
			uint64_t name;
			uint32_t tid, first, count; /* in contexts */
			uint32_t more; /* info with the next list of the operator, once they are described */
			uint16_t level;
		} contexts;
		struct {
			uint64_t group, algorithm, count;
			uint32_t tid;
			uint8_t dtype, flags;
		} comm_op;
		struct {
			uint32_t tid, row; /* of comm_parts */
		} part;
		struct {
			uint64_t bytes;
			uint32_t tid;
			uint16_t operation;
		} copy;
		struct {
			uint32_t tid, row; /* of fusions */
		} fusion;
		uint8_t bytes[32];
	};
};

/* fusion_op_info, hashes and bytes. */
struct nps_fusion {
	uint64_t name, input, output, weight, workspace, total, originals[8];
	uint32_t noriginals;
};

/* A stream was being captured into a graph: its tasks belong to the graph's model. */
struct nps_captured {
	uint64_t begin, end; /* host counter */
	uint32_t device, stream, model;
};

struct nps_host_records {
	struct nps_ext_sort events; /* struct nps_host_event */
	struct nps_vec contexts; /* uint32_t */
	struct nps_vec parts; /* struct nps_part_info without op */
	struct nps_vec fusions; /* struct nps_fusion */
	struct nps_vec captured; /* struct nps_captured by device, stream and begin */
	struct nps_map graphs; /* model id -> text: its name */
};

/* Reads all files. 0 or negative errno. */
int nps_host_records__read(struct nps_host_records *records, struct nps_cann_capture *capture);
void nps_host_records__free(struct nps_host_records *records);

#endif
