/* SPDX-License-Identifier: BSD-2-Clause */
/* analysis.db (outputs 4.7). */
#include "import/ascend_db/spec.h"

#define C(...) NPS_DB_C(__VA_ARGS__)
#define CB(...) NPS_DB_CB(__VA_ARGS__)

static const struct nps_db_column step_trace[] = {
	CB(step_trace, "deviceId", INTEGER, NUMBER, device),
	C(step_trace, "step", TEXT, TEXT, step),
	C(step_trace, "computing", NUMERIC, NUMBER, computing),
	C(step_trace, "communication_not_overlapped", NUMERIC, NUMBER, not_overlapped),
	C(step_trace, "overlapped", NUMERIC, NUMBER, overlapped),
	C(step_trace, "communication", NUMERIC, NUMBER, communication),
	C(step_trace, "free", NUMERIC, NUMBER, free),
	C(step_trace, "stage", NUMERIC, NUMBER, stage),
	C(step_trace, "bubble", NUMERIC, NUMBER, bubble),
	C(step_trace, "communication_not_overlapped_and_exclude_receive", NUMERIC, NUMBER, exclude_receive),
	C(step_trace, "preparing", NUMERIC, NUMBER, preparing),
};

static const struct nps_db_column bandwidth[] = {
	C(comm_bandwidth, "hccl_op_name", TEXT, TEXT, op),
	C(comm_bandwidth, "group_name", TEXT, TEXT, group),
	C(comm_bandwidth, "transport_type", TEXT, TEXT, transport),
	C(comm_bandwidth, "transit_size", NUMERIC, NUMBER, size),
	C(comm_bandwidth, "transit_time", NUMERIC, NUMBER, time),
	C(comm_bandwidth, "bandwidth", NUMERIC, NUMBER, bandwidth),
	C(comm_bandwidth, "large_packet_ratio", NUMERIC, NUMBER, large_ratio),
	C(comm_bandwidth, "package_size", NUMERIC, NUMBER, package),
	C(comm_bandwidth, "count", NUMERIC, NUMBER, count),
	C(comm_bandwidth, "total_duration", NUMERIC, NUMBER, total),
	C(comm_bandwidth, "step", TEXT, TEXT, step),
	C(comm_bandwidth, "type", TEXT, TEXT, type),
};

static const struct nps_db_column matrix[] = {
	C(comm_matrix, "hccl_op_name", TEXT, TEXT, op),
	C(comm_matrix, "group_name", TEXT, TEXT, group),
	C(comm_matrix, "src_rank", TEXT, TEXT, src),
	C(comm_matrix, "dst_rank", TEXT, TEXT, dst),
	C(comm_matrix, "transport_type", TEXT, TEXT, transport),
	C(comm_matrix, "transit_size", NUMERIC, NUMBER, size),
	C(comm_matrix, "transit_time", NUMERIC, NUMBER, time),
	C(comm_matrix, "bandwidth", NUMERIC, NUMBER, bandwidth),
	C(comm_matrix, "step", TEXT, TEXT, step),
	C(comm_matrix, "type", TEXT, TEXT, type),
	C(comm_matrix, "op_name", TEXT, TEXT, name),
};

static const struct nps_db_column comm_time[] = {
	C(comm_time, "hccl_op_name", TEXT, TEXT, op),
	C(comm_time, "group_name", TEXT, TEXT, group),
	C(comm_time, "start_timestamp", NUMERIC, NUMBER, start),
	C(comm_time, "elapse_time", NUMERIC, NUMBER, elapse),
	C(comm_time, "transit_time", NUMERIC, NUMBER, transit),
	C(comm_time, "wait_time", NUMERIC, NUMBER, wait),
	C(comm_time, "synchronization_time", NUMERIC, NUMBER, synchronization),
	C(comm_time, "idle_time", NUMERIC, NUMBER, idle),
	C(comm_time, "step", TEXT, TEXT, step),
	C(comm_time, "type", TEXT, TEXT, type),
};

const struct nps_db_table nps_db_analysis_tables[] = {
	{ .name = "StepTraceTime",
	  NPS_DB_COLUMNS(step_trace),
	  NPS_DB_OF(step_trace),
	  .generations = NPS_DB_BOTH,
	  .presence = NPS_DB_ALWAYS,
	  .torch = true },
	{ .name = "CommAnalyzerBandwidth",
	  NPS_DB_COLUMNS(bandwidth),
	  NPS_DB_OF(comm_bandwidth),
	  .generations = NPS_DB_BOTH,
	  .torch = true },
	{ .name = "CommAnalyzerMatrix",
	  NPS_DB_COLUMNS(matrix),
	  NPS_DB_OF(comm_matrix),
	  .generations = NPS_DB_BOTH,
	  .torch = true },
	{ .name = "CommAnalyzerTime",
	  NPS_DB_COLUMNS(comm_time),
	  NPS_DB_OF(comm_time),
	  .generations = NPS_DB_BOTH,
	  .torch = true },
	{ 0 },
};
