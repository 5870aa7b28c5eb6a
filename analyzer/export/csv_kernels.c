/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_details and op_summary: a row per kernel and per collective by start, device by device, because a kernel
 * does not wait for one of another device.
 */
#include "export/csv_pmu.h"
#include "export/csv_tables.h"

#include <errno.h>
#include <stdio.h>

#define COMM 0x80000000U /* of a row number: it is one of comm_op */
#define HEADER_MAX 8192

struct walk {
	const struct nps_model *m;
	size_t compute, comm; /* next rows */
	struct nps_vec order; /* uint32_t; empty: as merged */
	size_t at;
};

/* The next row of both tables by start; a kernel comes before a collective of the same time. */
static bool merged(struct walk *w, uint32_t *row)
{
	const struct nps_model *m = w->m;
	bool kernel = w->compute < m->compute.t.len, comm;

	/* A collective none of whose tasks was seen has no times. */
	while (w->comm < m->comm_op.t.len && !m->comm_op.end[w->comm])
		w->comm++;
	comm = w->comm < m->comm_op.t.len;
	if (!kernel && !comm)
		return false;
	if (kernel && comm)
		comm = m->comm_op.start[w->comm] < m->task.start[m->compute.task[w->compute]];
	*row = comm ? COMM | w->comm++ : w->compute++;
	return true;
}

static bool next(struct walk *w, uint32_t *row)
{
	if (!w->order.len)
		return merged(w, row);
	if (w->at == w->order.len)
		return false;
	if (!(w->at & (NPS_TABLE_HOT - 1)))
		nps_vec__cool(&w->order);
	*row = NPS_AT(&w->order, uint32_t, w->at++);
	return true;
}

static uint32_t device_of(const struct nps_model *m, uint32_t row)
{
	return row & COMM ? m->comm_op.device[row & ~COMM] : m->task.device[m->compute.task[row]];
}

static bool one_device(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	struct walk w = { .m = m };
	uint32_t row, device = 0;
	bool first = true;

	while (merged(&w, &row)) {
		if (!first && device_of(m, row) != device)
			return false;
		device = device_of(m, row);
		first = false;
		nps_pace__step(&pace);
	}
	return true;
}

static uint64_t device_key(const void *ctx, size_t i)
{
	const struct walk *w = ctx;

	if (!(i & (NPS_TABLE_HOT - 1)))
		nps_vec__cool(&w->order);
	return device_of(w->m, NPS_AT(&w->order, uint32_t, i));
}

/* Rows of several devices: merged by start into a list, which is then grouped. */
static int order_by_device(struct walk *w)
{
	struct nps_csv_groups groups;
	struct nps_pace pace = { .model = w->m };
	uint32_t row, *push;
	int err = 0;

	while (!err && merged(w, &row)) {
		push = nps_vec__push(&w->order);
		if (push)
			*push = row;
		else
			err = -errno;
		if (!(w->order.len & (NPS_TABLE_HOT - 1)))
			nps_vec__cool(&w->order);
		nps_pace__step(&pace);
	}
	if (err)
		return err;
	err = nps_csv__group(&groups, w->m, w->order.len, device_key, w);
	if (!err && groups.order.len) {
		for (size_t i = 0; i < groups.len; i++) {
			NPS_AT(&groups.order, uint32_t, i) =
				NPS_AT(&w->order, uint32_t, NPS_AT(&groups.order, uint32_t, i));
			if (!(i & (NPS_TABLE_HOT - 1))) {
				nps_vec__cool(&groups.order);
				nps_vec__cool(&w->order);
			}
		}
		nps_vec__free(&w->order);
		w->order = groups.order;
		return 0;
	}
	nps_vec__free(&groups.order);
	return err;
}

struct kernels {
	const struct nps_model *m;
	struct nps_csv *csv;
	struct nps_pmu_pivot pmu;
	bool torch, base; /* base: level 0 of the torch layout has few columns */
	bool steps;
	bool first; /* of its device */
	uint32_t device;
	uint64_t before; /* end of the row before */
	bool before_known; /* it was measured */
	uint32_t cooled; /* row of `compute` */
};

static void put_step(struct kernels *k, uint32_t step)
{
	if (!k->steps)
		return;
	if (step < k->m->step.t.len)
		nps_csv__i64(k->csv, k->m->step.id[step]);
	else
		nps_csv__empty(k->csv);
}

/* What nobody measured has no length and no wait: the cells are empty, which Insight reads as 0. */
static void put_times(struct kernels *k, uint64_t start, uint64_t end, bool measured)
{
	nps_csv__time(k->csv, start);
	if (measured)
		nps_csv__span(k->csv, end > start ? end - start : 0);
	else
		nps_csv__empty(k->csv);
	if (k->first)
		nps_csv__lit(k->csv, "0");
	else if (measured && k->before_known)
		nps_csv__span(k->csv, start > k->before ? start - k->before : 0);
	else
		nps_csv__empty(k->csv);
	k->before = end;
	k->before_known = measured;
	k->first = false;
}

static void put_shapes(struct kernels *k, uint32_t c)
{
	const struct nps_compute_table *t = &k->m->compute;

	nps_csv__text_cell(k->csv, t->input_shapes[c], NPS_CSV_QUOTED);
	nps_csv__text(k->csv, t->input_types[c]);
	nps_csv__text(k->csv, t->input_formats[c]);
	nps_csv__text_cell(k->csv, t->output_shapes[c], NPS_CSV_QUOTED);
	nps_csv__text(k->csv, t->output_types[c]);
	nps_csv__text(k->csv, t->output_formats[c]);
}

static void compute_row(struct kernels *k, uint32_t c)
{
	const struct nps_compute_table *t = &k->m->compute;
	const struct nps_task_table *tasks = &k->m->task;
	struct nps_csv *csv = k->csv;
	uint32_t task = t->task[c];

	if (!k->base) {
		nps_csv__u64(csv, tasks->model[task]);
		nps_csv__u64(csv, tasks->task[task]);
		nps_csv__u64(csv, tasks->stream[task]);
	}
	nps_csv__text(csv, t->name[c]);
	nps_csv__text(csv, t->type[c]);
	if (!k->base)
		nps_csv__text(csv, t->state[c]);
	nps_csv__text(csv, t->core[c]);
	put_times(k, tasks->start[task], tasks->end[task], nps_model__task_measured(k->m, task));
	nps_csv__u64(csv, t->blocks[c]);
	if (k->base)
		return;
	nps_csv__u64(csv, t->mix_blocks[c]);
	nps_csv__text(csv, t->hf32[c]);
	put_shapes(k, c);
	nps_csv__id(csv, tasks->context[task]);
	nps_pmu__cells(&k->pmu, csv, task);
}

static void comm_row(struct kernels *k, uint32_t row)
{
	const struct nps_comm_op_table *op = &k->m->comm_op;
	bool early = k->csv->ex->generation == NPS_GENERATION_A;
	struct nps_csv *csv = k->csv;

	if (!k->base) {
		nps_csv__u64(csv, op->model[row]);
		nps_csv__lit(csv, "N/A");
		nps_csv__lit(csv, "N/A");
	}
	nps_csv__text(csv, op->name[row]);
	nps_csv__text(csv, op->type[row]);
	if (!k->base)
		nps_csv__lit(csv, "N/A");
	nps_csv__lit(csv, early ? "HCCL" : "COMMUNICATION");
	put_times(k, op->start[row], op->end[row], nps_model__comm_measured(k->m, row));
	nps_csv__lit(csv, "0");
	if (k->base)
		return;
	nps_csv__lit(csv, early ? "N/A" : "0");
	for (int i = 0; i < 8; i++) /* HF32, shapes, context */
		nps_csv__lit(csv, "N/A");
	nps_pmu__cells(&k->pmu, csv, NPS_NONE);
}

static void row(struct kernels *k, uint32_t number)
{
	const struct nps_model *m = k->m;
	uint32_t device = device_of(m, number), r = number & ~COMM;

	if (device != k->device) {
		k->device = device;
		k->first = true;
	}
	nps_csv__row(k->csv);
	put_step(k, number & COMM ? m->comm_op.step[r] : m->task.step[m->compute.task[r]]);
	nps_csv__device(k->csv, device);
	if (number & COMM)
		comm_row(k, r);
	else
		compute_row(k, r);
	nps_csv__end(k->csv);
	/* Between rows of one device lie those of others, whose counters were passed too. */
	if (!(number & COMM) && r - k->cooled > NPS_TABLE_HOT) {
		nps_model__cool(m);
		k->cooled = r;
	}
}

#define SHAPES "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats"

static void make_header(const struct kernels *k, bool early, char *header)
{
	const char *unit = early ? "Dim" : "Num", *device = early ? "" : "Device_id,",
		   *step = k->steps ? "Step Id," : "";

	if (k->base)
		snprintf(header, HEADER_MAX,
			 "%s%sName,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block %s",
			 step, device, unit);
	else if (k->torch)
		snprintf(header, HEADER_MAX,
			 "%s%sModel ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),"
			 "Duration(us),Wait Time(us),Block %s,Mix Block %s,HF32 Eligible," SHAPES
			 ",Context ID",
			 step, device, unit, unit);
	else
		snprintf(
			header, HEADER_MAX,
			"%sModel ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),"
			"Task Duration(us),Task Wait Time(us),Block %s,Mix Block %s,HF32 Eligible," SHAPES
			",Context ID",
			device, unit, unit);
	if (!k->base)
		nps_pmu__header(&k->pmu, header, HEADER_MAX);
}

int nps_csv__kernels(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	bool torch = m->layout == NPS_LAYOUT_TORCH, early = ex->generation == NPS_GENERATION_A;
	struct kernels k = { .m = m, .torch = torch, .first = true };
	struct nps_csv_file file = { .stem = torch ? "kernel_details" : "op_summary",
				     .stamped = !torch,
				     .crlf = torch && early };
	struct walk walk = { .m = m };
	char header[HEADER_MAX];
	uint32_t number;
	int err = 0;

	k.base = torch && !m->level;
	k.steps = torch && m->step.t.len;
	if (!k.base)
		nps_pmu__init(&k.pmu, m);
	make_header(&k, early, header);
	file.header = header;
	nps_vec__init(&walk.order, m->tmpfd, sizeof(uint32_t));
	if (!one_device(m))
		err = order_by_device(&walk);
	if (!err) {
		k.csv = nps_csv__new(ex, dirfd, &file);
		err = k.csv ? 0 : -ENOMEM;
	}
	while (!err && next(&walk, &number))
		row(&k, number);
	if (!err)
		err = nps_csv__close(k.csv);
	nps_vec__free(&walk.order);
	return err;
}
