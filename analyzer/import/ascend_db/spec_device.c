/* SPDX-License-Identifier: BSD-2-Clause */
/* What ran on the device. */
#include "import/ascend_db/spec_rows.h"

#define C(...) NPS_DB_C(__VA_ARGS__)
#define CA(...) NPS_DB_CA(__VA_ARGS__)
#define CB(...) NPS_DB_CB(__VA_ARGS__)

static const struct nps_db_column task[] = {
	C(task, "startNs", INTEGER, NUMBER, start),   C(task, "endNs", INTEGER, TASK_END, end),
	C(task, "deviceId", INTEGER, NUMBER, device), C(task, "connectionId", INTEGER, NUMBER, connection),
	C(task, "globalTaskId", INTEGER, NUMBER, id), C(task, "globalPid", INTEGER, NUMBER, pid),
	C(task, "taskType", INTEGER, STRING, type),   C(task, "contextId", INTEGER, NUMBER, context),
	C(task, "streamId", INTEGER, NUMBER, stream), C(task, "taskId", INTEGER, NUMBER, task),
	C(task, "modelId", INTEGER, NUMBER, model),
};

/* blockDim is a number in the one generation and a text in the other. */
static const struct nps_db_column compute[] = {
	C(compute, "name", INTEGER, STRING, name),
	C(compute, "globalTaskId", INTEGER, TASK, task),
	CA(compute, "blockDim", INTEGER, NUMBER, blocks),
	CA(compute, "mixBlockDim", INTEGER, NUMBER, mix_blocks),
	CB(compute, "blockNum", INTEGER, NUMBER, blocks),
	CB(compute, "mixBlockNum", INTEGER, NUMBER, mix_blocks),
	C(compute, "taskType", INTEGER, STRING, core),
	C(compute, "opType", INTEGER, STRING, type),
	C(compute, "inputFormats", INTEGER, STRING, input_formats),
	C(compute, "inputDataTypes", INTEGER, STRING, input_types),
	C(compute, "inputShapes", INTEGER, STRING, input_shapes),
	C(compute, "outputFormats", INTEGER, STRING, output_formats),
	C(compute, "outputDataTypes", INTEGER, STRING, output_types),
	C(compute, "outputShapes", INTEGER, STRING, output_shapes),
	C(compute, "attrInfo", INTEGER, STRING, attributes),
	CB(compute, "opState", INTEGER, STRING, state),
	CB(compute, "hf32Eligible", INTEGER, STRING, hf32),
	CB(compute, "gridDim", INTEGER, STRING, grid),
	CB(compute, "blockDim", INTEGER, STRING, block_dim),
};

static const struct nps_db_column comm_task[] = {
	C(comm_task, "name", INTEGER, STRING, name),
	C(comm_task, "globalTaskId", INTEGER, TASK, task),
	C(comm_task, "taskType", INTEGER, STRING, type),
	C(comm_task, "planeId", INTEGER, NUMBER, plane),
	C(comm_task, "groupName", INTEGER, STRING, group),
	C(comm_task, "notifyId", INTEGER, NUMBER, notify),
	C(comm_task, "rdmaType", INTEGER, NUMBER, rdma_type),
	C(comm_task, "srcRank", INTEGER, NUMBER, src),
	C(comm_task, "dstRank", INTEGER, NUMBER, dst),
	C(comm_task, "transportType", INTEGER, NUMBER, transport),
	C(comm_task, "size", INTEGER, NUMBER, size),
	C(comm_task, "dataType", INTEGER, NUMBER, dtype),
	C(comm_task, "linkType", INTEGER, NUMBER, link),
	C(comm_task, "opId", INTEGER, NUMBER, op),
	CB(comm_task, "isMaster", INTEGER, NUMBER, master),
	CB(comm_task, "bandwidth", NUMERIC, NUMBER, bandwidth),
};

static const struct nps_db_column comm_op[] = {
	C(comm_op, "opName", INTEGER, STRING, name),
	C(comm_op, "startNs", INTEGER, NUMBER, start),
	C(comm_op, "endNs", INTEGER, COMM_END, end),
	C(comm_op, "connectionId", INTEGER, NUMBER, connection),
	C(comm_op, "groupName", INTEGER, STRING, group),
	C(comm_op, "opId", INTEGER, NUMBER, id),
	C(comm_op, "relay", INTEGER, NUMBER, relay),
	C(comm_op, "retry", INTEGER, NUMBER, retry),
	C(comm_op, "dataType", INTEGER, NUMBER, dtype),
	C(comm_op, "algType", INTEGER, STRING, algorithm),
	C(comm_op, "count", NUMERIC, NUMBER, count),
	C(comm_op, "opType", INTEGER, STRING, type),
	CB(comm_op, "deviceId", INTEGER, NUMBER, device),
	CB(comm_op, "rankSize", INTEGER, NUMBER, ranks),
};

static const struct nps_db_column comm_schedule[] = {
	C(comm_schedule, "name", INTEGER, STRING, name),
	C(comm_schedule, "globalTaskId", INTEGER, TASK, task),
	C(comm_schedule, "taskType", INTEGER, STRING, core),
	C(comm_schedule, "opType", INTEGER, STRING, type),
};

static const struct nps_db_column memory_copy[] = {
	C(memcpy, "globalTaskId", NUMERIC, TASK, task),
	C(memcpy, "size", NUMERIC, NUMBER, size),
	C(memcpy, "memcpyOperation", NUMERIC, NUMBER, operation),
};

static const struct nps_db_column pmu[] = {
	C(pmu, "globalTaskId", INTEGER, TASK, task),
	C(pmu, "name", INTEGER, STRING, name),
	C(pmu, "value", NUMERIC, NUMBER, value),
};

static const struct nps_db_column overlap[] = {
	{ "id", "INTEGER", NPS_DB_ROW, NPS_DB_BOTH, NPS_DB_NO_CELL },
	C(overlap, "deviceId", INTEGER, NUMBER, device),
	C(overlap, "startNs", NUMERIC, NUMBER, start),
	C(overlap, "endNs", NUMERIC, NUMBER, end),
	C(overlap, "type", INTEGER, NUMBER, type),
};

static const struct nps_db_column dpu[] = {
	C(dpu, "dpuDeviceId", INTEGER, NUMBER, device),	 C(dpu, "globalTid", NUMERIC, NUMBER, gtid),
	C(dpu, "startNs", NUMERIC, NUMBER, start),	 C(dpu, "endNs", NUMERIC, NUMBER, end),
	C(dpu, "globalTaskId", NUMERIC, NUMBER, global), C(dpu, "streamId", NUMERIC, NUMBER, stream),
	C(dpu, "taskId", NUMERIC, NUMBER, task),	 C(dpu, "opName", NUMERIC, STRING, name),
	C(dpu, "args", NUMERIC, STRING, arguments),
};

static const struct nps_db_column ccu[] = {
	C(ccu, "deviceId", NUMERIC, NUMBER, device), C(ccu, "globalTaskId", NUMERIC, NUMBER, global),
	C(ccu, "name", NUMERIC, STRING, name),	     C(ccu, "startNs", NUMERIC, NUMBER, start),
	C(ccu, "endNs", NUMERIC, NUMBER, end),	     C(ccu, "args", NUMERIC, STRING, arguments),
};

const struct nps_db_table nps_db_device_tables[] = {
	{ .name = "TASK",
	  NPS_DB_COLUMNS(task),
	  NPS_DB_OF(task),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_WITH_TASKS,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs",
	  .index = "TaskIndex",
	  .index_columns = "startNs,globalTaskId" },
	{ .name = "COMPUTE_TASK_INFO",
	  NPS_DB_COLUMNS(compute),
	  NPS_DB_OF(compute),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_WITH_TASKS,
	  .order = NPS_DB_BY_TASK,
	  .sorted = "globalTaskId",
	  .key = "globalTaskId" },
	{ .name = "COMMUNICATION_TASK_INFO",
	  NPS_DB_COLUMNS(comm_task),
	  NPS_DB_OF(comm_task),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_WITH_TASKS,
	  .order = NPS_DB_BY_TASK,
	  .sorted = "globalTaskId",
	  .index = "CommunicationTaskIndex",
	  .index_columns = "globalTaskId" },
	{ .name = "COMMUNICATION_OP",
	  NPS_DB_COLUMNS(comm_op),
	  NPS_DB_OF(comm_op),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_WITH_TASKS,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs",
	  .key = "opId" },
	{ .name = "COMMUNICATION_SCHEDULE_TASK_INFO",
	  NPS_DB_COLUMNS(comm_schedule),
	  NPS_DB_OF(comm_schedule),
	  .generations = NPS_DB_BOTH,
	  .order = NPS_DB_BY_TASK,
	  .sorted = "globalTaskId",
	  .key = "globalTaskId" },
	{ .name = "MEMCPY_INFO",
	  NPS_DB_COLUMNS(memory_copy),
	  NPS_DB_OF(memcpy),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_OWN,
	  .order = NPS_DB_BY_TASK,
	  .sorted = "globalTaskId" },
	{ .name = "TASK_PMU_INFO",
	  NPS_DB_COLUMNS(pmu),
	  NPS_DB_OF(pmu),
	  .generations = NPS_DB_BOTH,
	  .order = NPS_DB_BY_TASK,
	  .sorted = "globalTaskId" },
	{ .name = "OVERLAP_ANALYSIS",
	  NPS_DB_COLUMNS(overlap),
	  NPS_DB_OF(overlap),
	  .generations = NPS_DB_B,
	  .presence = NPS_DB_OWN_WITH_TASKS,
	  .key = "id" },
	{ .name = "DPU_TASK",
	  NPS_DB_COLUMNS(dpu),
	  NPS_DB_OF(dpu),
	  .generations = NPS_DB_BOTH,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs" },
	{ .name = "CCU",
	  NPS_DB_COLUMNS(ccu),
	  NPS_DB_OF(ccu),
	  .generations = NPS_DB_BOTH,
	  .order = NPS_DB_BY_TIME,
	  .sorted = "startNs" },
	{ 0 },
};

static const struct nps_db_column task_time[] = {
	C(task, "globalTaskId", INTEGER, NUMBER, id),
	C(task, "source", TEXT, SOURCE, source),
	C(bounds, "startLowNs", INTEGER, BOUND, start_low),
	C(bounds, "startHighNs", INTEGER, BOUND, start_high),
	C(bounds, "endLowNs", INTEGER, BOUND, end_low),
	C(bounds, "endHighNs", INTEGER, BOUND, end_high),
};

COLUMNS(job_memory, NPS_JOB_MEMORY_COLUMNS)
static const struct nps_db_column clock_error[] = {
	C(clock, "startNs", INTEGER, NUMBER, start),   C(clock, "endNs", INTEGER, NUMBER, end),
	C(clock, "deviceId", INTEGER, NUMBER, device), C(clock, "errorNs", INTEGER, NUMBER, error),
	C(clock, "source", INTEGER, STRING, source),
};

static const struct nps_db_column block[] = {
	C(block, "startNs", INTEGER, NUMBER, start),	 C(block, "endNs", INTEGER, NUMBER, end),
	C(block, "deviceId", INTEGER, NUMBER, device),	 C(block, "streamId", INTEGER, NUMBER, stream),
	C(block, "taskId", INTEGER, NUMBER, task),	 C(block, "blockId", INTEGER, NUMBER, block),
	C(block, "vectorCore", INTEGER, NUMBER, vector), C(block, "coreId", INTEGER, NUMBER, core),
};

COLUMNS(npu_usage, NPS_NPU_USAGE_COLUMNS)
COLUMNS(npu_process, NPS_NPU_PROCESS_COLUMNS)

/* A row for each task: who measured it, or between which times it began and ended. */
const struct nps_db_table nps_db_own_tables[] = {
	{ .name = "NPUSCOPE_TASK_TIME",
	  NPS_DB_COLUMNS(task_time),
	  NPS_DB_OF(task),
	  .generations = NPS_DB_BOTH,
	  .key = "globalTaskId" },
	{ ROWS_OF("NPUSCOPE_MEMORY", job_memory, job_memory) },
	{ .name = "NPUSCOPE_CLOCK",
	  NPS_DB_COLUMNS(clock_error),
	  NPS_DB_OF(clock),
	  .generations = NPS_DB_BOTH },
	{ .name = "NPUSCOPE_BLOCK", NPS_DB_COLUMNS(block), NPS_DB_OF(block), .generations = NPS_DB_BOTH },
	{ ROWS_OF("NPUSCOPE_NPU_USAGE", npu_usage, npu_usage) },
	{ ROWS_OF("NPUSCOPE_NPU_PROCESS", npu_process, npu_process) },
	{ 0 },
};
