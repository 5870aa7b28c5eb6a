/* SPDX-License-Identifier: BSD-2-Clause */
/* What torch_npu adds. */
#include "import/ascend_db/spec.h"

#define C(...) NPS_DB_C(__VA_ARGS__)

static const struct nps_db_column torch[] = {
	C(torch, "startNs", TEXT, TIME_TEXT, start),
	C(torch, "endNs", TEXT, TIME_TEXT, end),
	C(torch, "globalTid", INTEGER, NUMBER, gtid),
	C(torch, "connectionId", INTEGER, NUMBER, connection),
	C(torch, "name", INTEGER, STRING, name),
	C(torch, "sequenceNumber", INTEGER, NUMBER, sequence),
	C(torch, "fwdThreadId", INTEGER, NUMBER, forward_tid),
	C(torch, "inputDtypes", INTEGER, STRING_NULL, input_types),
	C(torch, "inputShapes", INTEGER, STRING_NULL, input_shapes),
	C(torch, "callchainId", INTEGER, NUMBER, callchain),
	C(torch, "type", INTEGER, NUMBER, type),
};

static const struct nps_db_column link[] = {
	C(link, "id", INTEGER, NUMBER, id),
	C(link, "connectionId", INTEGER, NUMBER, connection),
};

static const struct nps_db_column frame[] = {
	C(frame, "id", INTEGER, NUMBER, id),
	C(frame, "stack", INTEGER, STRING, stack),
	C(frame, "stackDepth", INTEGER, NUMBER, depth),
};

static const struct nps_db_column step[] = {
	C(step, "id", INTEGER, NUMBER, id),
	C(step, "startNs", INTEGER, NUMBER, start),
	C(step, "endNs", INTEGER, NUMBER, end),
};

static const struct nps_db_column gc[] = {
	C(gc, "startNs", INTEGER, NUMBER, start),
	C(gc, "endNs", INTEGER, NUMBER, end),
	C(gc, "globalTid", INTEGER, NUMBER, gtid),
};

static const struct nps_db_column memory_record[] = {
	C(memory_record, "component", INTEGER, STRING, component),
	C(memory_record, "timestamp", INTEGER, NUMBER, timestamp),
	C(memory_record, "totalAllocated", INTEGER, NUMBER, allocated),
	C(memory_record, "totalReserved", INTEGER, NUMBER, reserved),
	C(memory_record, "totalActive", INTEGER, NUMBER, active),
	C(memory_record, "streamPtr", INTEGER, NUMBER, stream),
	C(memory_record, "deviceId", INTEGER, NUMBER, device),
};

static const struct nps_db_column op_memory[] = {
	C(op_memory, "name", INTEGER, STRING_OP, name),
	C(op_memory, "size", INTEGER, NUMBER, size),
	C(op_memory, "allocationTime", INTEGER, NUMBER, allocation),
	C(op_memory, "releaseTime", INTEGER, NUMBER, release),
	C(op_memory, "activeReleaseTime", INTEGER, NUMBER, active_release),
	C(op_memory, "duration", INTEGER, NUMBER, duration),
	C(op_memory, "activeDuration", INTEGER, NUMBER, active_duration),
	C(op_memory, "allocationTotalAllocated", INTEGER, NUMBER, allocation_allocated),
	C(op_memory, "allocationTotalReserved", INTEGER, NUMBER, allocation_reserved),
	C(op_memory, "allocationTotalActive", INTEGER, NUMBER, allocation_active),
	C(op_memory, "releaseTotalAllocated", INTEGER, NUMBER, release_allocated),
	C(op_memory, "releaseTotalReserved", INTEGER, NUMBER, release_reserved),
	C(op_memory, "releaseTotalActive", INTEGER, NUMBER, release_active),
	C(op_memory, "streamPtr", INTEGER, NUMBER, stream),
	C(op_memory, "deviceId", INTEGER, NUMBER, device),
};

const struct nps_db_table nps_db_torch_tables[] = {
	{ .name = "PYTORCH_API",
	  NPS_DB_COLUMNS(torch),
	  NPS_DB_OF(torch),
	  .generations = NPS_DB_BOTH,
	  .range = NPS_DB_TORCH,
	  .torch = true },
	{ .name = "CONNECTION_IDS",
	  NPS_DB_COLUMNS(link),
	  NPS_DB_OF(link),
	  .generations = NPS_DB_BOTH,
	  .torch = true },
	{ .name = "PYTORCH_CALLCHAINS",
	  NPS_DB_COLUMNS(frame),
	  NPS_DB_OF(frame),
	  .generations = NPS_DB_BOTH,
	  .range = NPS_DB_TORCH,
	  .torch = true },
	{ .name = "STEP_TIME",
	  NPS_DB_COLUMNS(step),
	  NPS_DB_OF(step),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_OWN,
	  .torch = true },
	{ .name = "GC_RECORD", NPS_DB_COLUMNS(gc), NPS_DB_OF(gc), .generations = NPS_DB_BOTH, .torch = true },
	{ .name = "MEMORY_RECORD",
	  NPS_DB_COLUMNS(memory_record),
	  NPS_DB_OF(memory_record),
	  .generations = NPS_DB_BOTH,
	  .range = NPS_DB_MEMORY,
	  .torch = true },
	{ .name = "OP_MEMORY",
	  NPS_DB_COLUMNS(op_memory),
	  NPS_DB_OF(op_memory),
	  .generations = NPS_DB_BOTH,
	  .range = NPS_DB_MEMORY,
	  .torch = true },
	{ 0 },
};
