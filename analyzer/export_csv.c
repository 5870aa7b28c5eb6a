/* SPDX-License-Identifier: BSD-2-Clause */
/* The CSV tables (outputs 3.2). */
#include "export.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_ID "4294967295"

static void cell_us(struct nps_writer *w, uint64_t ns)
{
	nps_writer__us(w, ns);
	nps_writer__lit(w, ",");
}

static void cell_text(struct nps_writer *w, const char *text)
{
	nps_writer__csv(w, text);
	nps_writer__lit(w, ",");
}

static void cell_u64(struct nps_writer *w, uint64_t value)
{
	nps_writer__u64(w, value);
	nps_writer__lit(w, ",");
}

/* --- kernel_details.csv --- */

static void kernel_head(const struct nps_result *r, struct nps_writer *w, uint32_t step, unsigned int device)
{
	if (r->proc->steps.len) {
		if (step != NPS_NONE)
			nps_writer__u64(w, NPS_AT(&r->proc->steps, struct nps_step, step).number);
		nps_writer__lit(w, ",");
	}
	cell_u64(w, device);
	nps_writer__lit(w, NO_ID ",");
}

static void kernel_times(const struct nps_result *r, struct nps_writer *w, uint64_t start, uint64_t end,
			 uint64_t *before, bool first)
{
	nps_writer__us(w, nps_model__real(r->model, start));
	nps_writer__lit(w, "\t,"); /* the TAB keeps spreadsheets from rounding it */
	cell_us(w, end - start);
	if (first)
		nps_writer__lit(w, "0,");
	else
		cell_us(w, start > *before ? start - *before : 0);
	*before = end;
}

static unsigned int kernel_device(const struct nps_result *r, const struct nps_kernel *k)
{
	return k->comm ? nps_result__comm(r, k->row)->device : r->tasks[k->row].device;
}

static void kernel_row(const struct nps_result *r, struct nps_writer *w, const struct nps_kernel *k,
		       uint64_t *before, bool first)
{
	const struct nps_strings *strings = &r->model->strings;
	const struct nps_comm_op *op = k->comm ? nps_result__comm(r, k->row) : NULL;
	const struct nps_task *task = k->comm ? NULL : &r->tasks[k->row];

	assert(op || task);
	kernel_head(r, w, op ? op->step : task->step, kernel_device(r, k));
	if (op) {
		nps_writer__lit(w, "N/A,N/A,");
	} else {
		cell_u64(w, task->task);
		cell_u64(w, task->stream);
	}
	cell_text(w, nps_strings__get(strings, op ? op->name : task->name));
	cell_text(w, nps_strings__get(strings, op ? op->type : task->type));
	nps_writer__lit(w, "N/A,");
	cell_text(w, op ? "COMMUNICATION" : nps_task_core(task));
	kernel_times(r, w, op ? op->start : task->start, op ? op->end : task->end, before, first);
	cell_u64(w, op ? 0 : task->blocks);
	nps_writer__lit(w, "0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n");
}

/* Device by device: a kernel does not wait for one of another device. */
static int kernel_details(const struct nps_result *r, int dirfd)
{
	struct nps_writer w;
	int err = nps_writer__open(&w, dirfd, "kernel_details.csv");

	if (err)
		return err;
	if (r->proc->steps.len)
		nps_writer__lit(&w, "Step Id,");
	nps_writer__lit(&w, "Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start "
			    "Time(us),Duration(us),Wait Time(us),"
			    "Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input "
			    "Formats,Output Shapes,"
			    "Output Data Types,Output Formats,Context ID\n");
	for (unsigned int device = 0; device < NPS_MAX_DEVICES; device++) {
		uint64_t before = 0;
		bool first = true;

		if (!(r->proc->devices >> device & 1))
			continue;
		for (size_t i = 0; i < r->kernels.len; i++) {
			const struct nps_kernel *k = &NPS_AT(&r->kernels, struct nps_kernel, i);

			if (kernel_device(r, k) != device)
				continue;
			kernel_row(r, &w, k, &before, first);
			first = false;
		}
	}
	return nps_writer__close(&w);
}

/* --- op_statistic.csv --- */

struct op_stat {
	uint32_t type, device;
	const char *core;
	uint64_t count, measured, total, least, most;
};

static int by_total(const void *a, const void *b)
{
	const struct op_stat *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

/* Collects by (device, type, core). Only measured tasks count towards times. */
static int op_stats(const struct nps_result *r, struct nps_vec *stats)
{
	struct nps_map rows = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < r->ntasks; i++) {
		const struct nps_task *task = &r->tasks[i];
		uint64_t key = nps_hash2((uint64_t)task->type << 32 | task->device, task->core),
			 ns = task->end - task->start;
		struct op_stat *stat;
		uint32_t row;

		if (task->kind != NPS_TASK_COMPUTE || task->comm != NPS_NONE)
			continue;
		row = nps_map__get(&rows, key);
		stat = row == NPS_NONE ? nps_vec__push(stats) : &NPS_AT(stats, struct op_stat, row);
		if (!stat) {
			err = -errno;
			break;
		}
		if (row == NPS_NONE) {
			*stat = (struct op_stat){ .type = task->type,
						  .device = task->device,
						  .core = nps_task_core(task),
						  .least = UINT64_MAX };
			err = nps_map__put(&rows, key, stats->len - 1);
		}
		if (err)
			break;
		stat->count++;
		if (!nps_task__measured(task))
			continue;
		stat->measured++;
		stat->total += ns;
		stat->least = NPS_MIN(stat->least, ns);
		stat->most = NPS_MAX(stat->most, ns);
	}
	nps_map__free(&rows);
	if (!err && stats->data)
		qsort(stats->data, stats->len, stats->elem, by_total);
	return err;
}

static void fixed3(struct nps_writer *w, double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.3f", value);
	nps_writer__lit(w, text);
}

static int op_statistic(const struct nps_result *r, int dirfd)
{
	struct nps_vec stats;
	struct nps_writer w;
	uint64_t total[NPS_MAX_DEVICES] = { 0 }; /* of each device */
	int err;

	nps_vec__init(&stats, r->model->tmpfd, sizeof(struct op_stat));
	err = op_stats(r, &stats);
	if (!err)
		err = nps_writer__open(&w, dirfd, "op_statistic.csv");
	if (err)
		goto out;
	nps_writer__lit(&w, "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max "
			    "Time(us),Ratio(%)\n");
	for (size_t i = 0; i < stats.len; i++)
		total[NPS_AT(&stats, struct op_stat, i).device] += NPS_AT(&stats, struct op_stat, i).total;
	for (size_t i = 0; i < stats.len; i++) {
		const struct op_stat *s = &NPS_AT(&stats, struct op_stat, i);

		cell_u64(&w, s->device);
		cell_text(&w, nps_strings__get(&r->model->strings, s->type));
		cell_text(&w, s->core);
		cell_u64(&w, s->count);
		cell_us(&w, s->total);
		cell_us(&w, s->measured ? s->least : 0);
		fixed3(&w, s->measured ? s->total / 1000.0 / s->measured : 0);
		nps_writer__lit(&w, ",");
		cell_us(&w, s->most);
		fixed3(&w, total[s->device] ? 100.0 * s->total / total[s->device] : 0);
		nps_writer__lit(&w, "\n");
	}
	err = nps_writer__close(&w);
out:
	nps_vec__free(&stats);
	return err;
}

/* --- api_statistic.csv --- */

struct api_stat {
	uint32_t name;
	uint8_t level;
	uint64_t count, total, least, most;
	double squares; /* of the distance from the mean, us^2 */
};

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct api_stat *x = a, *y = b;
	const struct nps_strings *strings = ctx;
	int order = strcmp(nps_strings__get(strings, x->name), nps_strings__get(strings, y->name));

	return order ? order : x->level - y->level;
}

static int api_stats(const struct nps_result *r, struct nps_vec *stats)
{
	struct nps_map rows = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < r->proc->cann.len; i++) {
		const struct nps_cann *api = &NPS_AT(&r->proc->cann, struct nps_cann, i);
		uint64_t key = (uint64_t)api->name << 8 | api->level, ns = api->end - api->start;
		uint32_t row = nps_map__get(&rows, key);
		struct api_stat *s = row == NPS_NONE ? nps_vec__push(stats)
						     : &NPS_AT(stats, struct api_stat, row);
		double mean;

		if (!s) {
			err = -errno;
			break;
		}
		if (row == NPS_NONE) {
			*s = (struct api_stat){ .name = api->name, .level = api->level, .least = UINT64_MAX };
			err = nps_map__put(&rows, key, stats->len - 1);
		}
		/* Welford's update, so that large sums do not swallow small variances. */
		mean = s->count ? (double)s->total / s->count : 0;
		s->count++;
		s->total += ns;
		s->squares += ((double)ns - mean) * ((double)ns - (double)s->total / s->count) / 1e6;
		s->least = NPS_MIN(s->least, ns);
		s->most = NPS_MAX(s->most, ns);
	}
	nps_map__free(&rows);
	if (!err && stats->data)
		qsort_r(stats->data, stats->len, stats->elem, by_name, &r->model->strings);
	return err;
}

static int api_statistic(const struct nps_result *r, int dirfd)
{
	static const char *const levels[] = { [NPS_LAYER_RUNTIME] = "runtime",
					      [NPS_LAYER_COMM] = "communication",
					      [NPS_LAYER_NODE] = "node",
					      [NPS_LAYER_ACL] = "acl" };
	struct nps_vec stats;
	struct nps_writer w;
	int err;

	nps_vec__init(&stats, r->model->tmpfd, sizeof(struct api_stat));
	err = api_stats(r, &stats);
	if (!err)
		err = nps_writer__open(&w, dirfd, "api_statistic.csv");
	if (err)
		goto out;
	nps_writer__lit(&w, "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n");
	for (size_t i = 0; i < stats.len; i++) {
		const struct api_stat *s = &NPS_AT(&stats, struct api_stat, i);

		nps_writer__lit(&w, "host,");
		cell_text(&w, levels[s->level]);
		cell_text(&w, nps_strings__get(&r->model->strings, s->name));
		cell_us(&w, s->total);
		cell_u64(&w, s->count);
		fixed3(&w, s->total / 1000.0 / s->count);
		nps_writer__lit(&w, ",");
		cell_us(&w, s->least);
		cell_us(&w, s->most);
		fixed3(&w, s->squares / s->count);
		nps_writer__lit(&w, "\n");
	}
	err = nps_writer__close(&w);
out:
	nps_vec__free(&stats);
	return err;
}

/* --- step_trace_time.csv --- */

static int step_trace(const struct nps_result *r, int dirfd)
{
	struct nps_writer w;
	int err = nps_writer__open(&w, dirfd, "step_trace_time.csv");

	if (err)
		return err;
	nps_writer__lit(&w, "Device_id,Step,Computing,Communication(Not "
			    "Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
			    "Communication(Not Overlapped and Exclude Receive),Preparing\n");
	for (size_t i = 0; i < r->steps.len; i++) {
		const struct nps_step_row *row = &NPS_AT(&r->steps, struct nps_step_row, i);
		const struct nps_overlap_sums *s = &row->sums;
		uint64_t span = s->last - s->first;

		cell_u64(&w, row->device);
		if (row->step != NPS_NONE)
			nps_writer__u64(&w, NPS_AT(&r->proc->steps, struct nps_step, row->step).number);
		nps_writer__lit(&w, ",");
		cell_us(&w, s->computing);
		cell_us(&w, s->not_overlapped);
		cell_us(&w, s->communication - s->not_overlapped);
		cell_us(&w, s->communication);
		cell_us(&w, s->free);
		cell_us(&w, span > row->bubble ? span - row->bubble : 0);
		if (row->bubble)
			cell_us(&w, row->bubble);
		else
			nps_writer__lit(&w, "0,");
		cell_us(&w, s->not_overlapped > row->bubble ? s->not_overlapped - row->bubble : 0);
		nps_writer__us(&w, row->preparing);
		nps_writer__lit(&w, "\n");
	}
	return nps_writer__close(&w);
}

int nps_export__csv(const struct nps_result *result, int dirfd)
{
	int err = kernel_details(result, dirfd);

	if (!err)
		err = op_statistic(result, dirfd);
	if (!err)
		err = api_statistic(result, dirfd);
	if (!err)
		err = step_trace(result, dirfd);
	return err;
}
