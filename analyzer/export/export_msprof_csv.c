/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of msprof's layout (outputs 3.4), but for sampled counters. */
#include "export/csv_tables.h"
#include "export/table.h"

static const struct nps_csv_column aicpu_mi_columns[] = {
	NPS_CSV_DEVICE_ID(aicpu_mi),
	NPS_CSV_COL("Node Name", TEXT, aicpu_mi, node),
	NPS_CSV_COL("Start Time(us)", TIME, aicpu_mi, start),
	NPS_CSV_COL("End Time(us)", TIME, aicpu_mi, end),
	NPS_CSV_COL("Queue Size", NUMBER, aicpu_mi, queue),
};

static const struct nps_csv_column dp_columns[] = {
	NPS_CSV_DEVICE_ID(dp),
	NPS_CSV_COL("Timestamp(us)", TIME, dp, timestamp),
	NPS_CSV_COL("Action", TEXT, dp, action),
	NPS_CSV_COL("Source", TEXT, dp, source),
	NPS_CSV_COL("Cached Buffer Size", NUMBER, dp, size),
};

#define KB(title, column) NPS_CSV_COL(title, REPR_OR_BLANK, fusion_op, column, .per = NPS_KB)

static const struct nps_csv_column fusion_op_columns[] = {
	NPS_CSV_HOST_ID,
	NPS_CSV_COL("Model Name", TEXT, fusion_op, model_name),
	NPS_CSV_COL("Model ID", NUMBER, fusion_op, model),
	NPS_CSV_COL("Fusion Op", TEXT, fusion_op, name),
	NPS_CSV_COL("Original Ops", TEXT, fusion_op, originals),
	KB("Memory Input(KB)", input),
	KB("Memory Output(KB)", output),
	KB("Memory Weight(KB)", weight),
	KB("Memory Workspace(KB)", workspace),
	KB("Memory Total(KB)", total),
};

static void put_event_type(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	static const char *const types[] = { "marker", "push/pop", "start/end", "marker_ex" };
	uint32_t type = csv->model->mstx.type[row->at[0]];

	(void)ctx;
	nps_csv__lit(csv, type < NPS_ARRAY_SIZE(types) ? types[type] : "N/A");
}

static const struct nps_csv_column mstx_columns[] = {
	NPS_CSV_HOST_ID,
	NPS_CSV_COL("pid", PID, mstx, gtid),
	NPS_CSV_COL("tid", TID, mstx, gtid),
	NPS_CSV_COL("category", NUMBER, mstx, category),
	NPS_CSV_BY("event_type", put_event_type),
	NPS_CSV_COL("payload_type", NUMBER_OR_BLANK, mstx, payload_type),
	NPS_CSV_COL("payload_value", NUMBER, mstx, payload),
	NPS_CSV_COL("Start_time(us)", TIME, mstx, start),
	NPS_CSV_COL("End_time(us)", TIME, mstx, end),
	NPS_CSV_COL("message_type", NUMBER_OR_BLANK, mstx, message_type),
	NPS_CSV_COL("message", TEXT, mstx, message),
	NPS_CSV_COL("domain", TEXT, mstx, domain),
	NPS_CSV_COL("Device Start_time(us)", TIME_NOT_0, mstx, device_start, .when = NPS_CSV_B),
	NPS_CSV_COL("Device End_time(us)", TIME_NOT_0, mstx, device_end, .when = NPS_CSV_B),
};

static int tables_of_rows(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table tables[] = {
		{ "aicpu_mi", NPS_CSV_OF(aicpu_mi, aicpu_mi_columns) },
		{ "dp", NPS_CSV_OF(dp, dp_columns) },
		{ "fusion_op", NPS_CSV_OF(fusion_op, fusion_op_columns) },
		{ "msprof_tx", NPS_CSV_OF(mstx, mstx_columns) },
	};

	return nps_csv_tables__write(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}

int nps_export__msprof_csv(const struct nps_export *ex, int dirfd)
{
	static nps_csv_write_fn *const tables[] = {
		nps_csv__kernels,	nps_csv__op_statistic,
		nps_csv__api_statistic, nps_csv__communication_statistic,
		nps_csv__task_time,	nps_csv__msprof_memory,
		nps_csv__task_counters, nps_csv__aicpu,
		tables_of_rows,		nps_csv__step_trace,
	};

	return nps_csv__write_each(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}
