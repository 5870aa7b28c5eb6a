/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of msprof's layout (outputs 3.4), but for sampled counters. */
#include "export/csv_tables.h"

#include <errno.h>

static int aicpu_mi(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "aicpu_mi",
					   .header = "Node Name,Start Time(us),End Time(us),Queue Size",
					   .stamped = true,
					   .device = true };
	const struct nps_aicpu_mi_table *t = &ex->model->aicpu_mi;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__text(csv, t->node[i]);
		nps_csv__time(csv, t->start[i]);
		nps_csv__time(csv, t->end[i]);
		nps_csv__u64(csv, t->queue[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static int dp(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "dp",
					   .header = "Timestamp(us),Action,Source,Cached Buffer Size",
					   .stamped = true,
					   .device = true };
	const struct nps_dp_table *t = &ex->model->dp;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__time(csv, t->timestamp[i]);
		nps_csv__text(csv, t->action[i]);
		nps_csv__text(csv, t->source[i]);
		nps_csv__u64(csv, t->size[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static int fusion_op(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "fusion_op",
		.header = "Model Name,Model ID,Fusion Op,Original Ops,Memory Input(KB),"
			  "Memory Output(KB),Memory Weight(KB),Memory Workspace(KB),"
			  "Memory Total(KB)",
		.stamped = true,
		.device = true
	};
	const struct nps_fusion_op_table *t = &ex->model->fusion_op;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, NPS_NONE);
		nps_csv__text(csv, t->model_name[i]);
		nps_csv__u64(csv, t->model[i]);
		nps_csv__text(csv, t->name[i]);
		nps_csv__text(csv, t->originals[i]);
		nps_csv__bytes(csv, t->input[i], NPS_KB);
		nps_csv__bytes(csv, t->output[i], NPS_KB);
		nps_csv__bytes(csv, t->weight[i], NPS_KB);
		nps_csv__bytes(csv, t->workspace[i], NPS_KB);
		nps_csv__bytes(csv, t->total[i], NPS_KB);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

static void put_device_mark(struct nps_csv *csv, uint64_t time)
{
	if (time)
		nps_csv__time(csv, time);
	else
		nps_csv__lit(csv, "N/A");
}

static int msprof_tx(const struct nps_export *ex, int dirfd)
{
	static const char *const types[] = { "marker", "push/pop", "start/end", "marker_ex" };
	bool early = ex->generation == NPS_GENERATION_A;
	const struct nps_csv_file file = {
		.stem = "msprof_tx",
		.header = early ? "pid,tid,category,event_type,payload_type,payload_value,Start_time(us),"
				  "End_time(us),message_type,message,domain"
				: "pid,tid,category,event_type,payload_type,payload_value,Start_time(us),"
				  "End_time(us),message_type,message,domain,Device Start_time(us),"
				  "Device End_time(us)",
		.stamped = true,
		.device = true
	};
	const struct nps_mstx_table *t = &ex->model->mstx;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, NPS_NONE);
		nps_csv__u64(csv, t->gtid[i] >> 32);
		nps_csv__u64(csv, t->gtid[i] & UINT32_MAX);
		nps_csv__u64(csv, t->category[i]);
		nps_csv__lit(csv, t->type[i] < NPS_ARRAY_SIZE(types) ? types[t->type[i]] : "N/A");
		nps_csv__i64(csv, t->payload_type[i]);
		nps_csv__u64(csv, t->payload[i]);
		nps_csv__time(csv, t->start[i]);
		nps_csv__time(csv, t->end[i]);
		nps_csv__i64(csv, t->message_type[i]);
		nps_csv__text(csv, t->message[i]);
		nps_csv__text(csv, t->domain[i]);
		if (!early) {
			put_device_mark(csv, t->device_start[i]);
			put_device_mark(csv, t->device_end[i]);
		}
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

int nps_export__msprof_csv(const struct nps_export *ex, int dirfd)
{
	static int (*const tables[])(const struct nps_export *, int) = {
		nps_csv__kernels,
		nps_csv__op_statistic,
		nps_csv__api_statistic,
		nps_csv__communication_statistic,
		nps_csv__task_time,
		nps_csv__msprof_memory,
		nps_csv__task_counters,
		nps_csv__aicpu,
		aicpu_mi,
		dp,
		fusion_op,
		msprof_tx,
		nps_csv__step_trace,
	};
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(tables); i++)
		err = tables[i](ex, dirfd);
	return err;
}
