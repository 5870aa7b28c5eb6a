/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_details and op_summary: a row per kernel and per collective by start, device by device, because a
 * kernel does not wait for one of another device.
 */
#include "export/csv_pmu.h"
#include "export/csv_tables.h"

#include <errno.h>

#define COMM 0x80000000U /* of a row number: it is one of comm_op */

struct kernel_walk {
	const struct nps_model *m;
	size_t compute, comm; /* next rows */
	struct nps_vec order; /* uint32_t; empty: as merged */
	size_t at;
};

/* The next row of both tables by start; a kernel comes before a collective of the same time. */
static bool merged(struct kernel_walk *w, uint32_t *row)
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

static bool kernel_next_number(struct kernel_walk *w, uint32_t *row)
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

static uint32_t kernel_device(const struct nps_model *m, uint32_t row)
{
	return row & COMM ? m->comm_op.device[row & ~COMM] : m->task.device[m->compute.task[row]];
}

static bool one_device(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	struct kernel_walk w = { .m = m };
	uint32_t row, device = 0;
	bool first = true;

	while (merged(&w, &row)) {
		if (!first && kernel_device(m, row) != device)
			return false;
		device = kernel_device(m, row);
		first = false;
		nps_pace__step(&pace);
	}
	return true;
}

static uint64_t device_key(const void *ctx, size_t i)
{
	const struct kernel_walk *w = ctx;

	if (!(i & (NPS_TABLE_HOT - 1)))
		nps_vec__cool(&w->order);
	return kernel_device(w->m, NPS_AT(&w->order, uint32_t, i));
}

/* Rows of several devices: merged by start into a list, which is then grouped. */
static int order_by_device(struct kernel_walk *w)
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
	if (err || !groups.order.len) {
		nps_vec__free(&groups.order);
		return err;
	}
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

/* --- rows -------------------------------------------------------------------------------------------- */

enum { COMPUTE_SOURCE, TASK_SOURCE, COMM_SOURCE, STEP_SOURCE, OWN_SOURCE, PMU_SOURCE };

#define COLLECTIVE 1 /* variant of rows */

struct kernels {
	const struct nps_model *m;
	struct kernel_walk walk;
	struct nps_pmu_pivot pmu;
	bool started; /* there was a row of this device */
	uint32_t device;
	uint64_t before; /* end of the row before */
	bool before_known; /* it was measured */
	uint32_t cooled; /* row of `compute` */
	/* Cells of the current row. Without a measurement: no length, no wait, which Insight reads as 0. */
	int64_t duration, wait;
	bool first; /* of its device */
};

static void kernel_set_times(struct kernels *k, uint32_t device, uint64_t start, uint64_t end, bool measured)
{
	k->first = !k->started || device != k->device;
	k->duration = k->wait = NPS_NULL;
	if (measured)
		k->duration = end > start ? (int64_t)(end - start) : 0;
	if (measured && k->before_known)
		k->wait = start > k->before ? (int64_t)(start - k->before) : 0;
	k->started = true;
	k->device = device;
	k->before = end;
	k->before_known = measured;
}

static size_t kernel_step_row(const struct nps_model *m, uint32_t step)
{
	return step < m->step.t.len ? step : NPS_CSV_NO_ROW;
}

static void kernel_fill_row(struct kernels *k, uint32_t c, struct nps_csv_row *row)
{
	const struct nps_task_table *t = &k->m->task;
	uint32_t task = k->m->compute.task[c];

	row->variant = 0;
	row->at[COMPUTE_SOURCE] = c;
	row->at[TASK_SOURCE] = task;
	row->at[STEP_SOURCE] = kernel_step_row(k->m, t->step[task]);
	kernel_set_times(k, t->device[task], t->start[task], t->end[task],
			 nps_model__task_measured(k->m, task));
	nps_pmu__read(&k->pmu, task);
}

static void comm_row(struct kernels *k, uint32_t op, struct nps_csv_row *row)
{
	const struct nps_comm_op_table *t = &k->m->comm_op;

	row->variant = COLLECTIVE;
	row->at[COMPUTE_SOURCE] = row->at[TASK_SOURCE] = NPS_CSV_NO_ROW;
	row->at[COMM_SOURCE] = op;
	row->at[STEP_SOURCE] = kernel_step_row(k->m, t->step[op]);
	kernel_set_times(k, t->device[op], t->start[op], t->end[op], nps_model__comm_measured(k->m, op));
	nps_pmu__read(&k->pmu, NPS_NONE);
}

static bool kernel_next(void *ctx, struct nps_csv_row *row)
{
	struct kernels *k = ctx;
	uint32_t number;

	if (!kernel_next_number(&k->walk, &number))
		return false;
	if (number & COMM) {
		comm_row(k, number & ~COMM, row);
		return true;
	}
	/* Between rows of one device lie those of others, whose counters were passed too. */
	if (number - k->cooled > NPS_TABLE_HOT) {
		nps_model__cool(k->m);
		k->cooled = number;
	}
	kernel_fill_row(k, number, row);
	return true;
}

static void put_kernel_wait(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const struct kernels *k = ctx;

	(void)row;
	if (k->first)
		nps_csv__lit(csv, "0");
	else if (k->wait == NPS_NULL)
		nps_csv__empty(csv);
	else
		nps_csv__span(csv, (uint64_t)k->wait);
}

/* --- columns ----------------------------------------------------------------------------------------- */

#define FULL NPS_CSV_IF(0) /* not level 0 of the torch layout, which has few columns */
#define STEPS NPS_CSV_IF(1)

#define KERNEL(title, format, column, ...) NPS_CSV_COL(title, format, compute, column, ##__VA_ARGS__)
#define TASK(title, format, column, ...)                                                                     \
	NPS_CSV_COL(title, format, task, column, .source = TASK_SOURCE, ##__VA_ARGS__)
/* The cell of the column above in the row of a collective. */
#define COMM_CELL(format, column)                                                                            \
	NPS_CSV_COL(NULL, format, comm_op, column, .source = COMM_SOURCE, .variant = COLLECTIVE)
#define COMM_SAME(text, ...) NPS_CSV_SAME(NULL, text, .variant = COLLECTIVE, ##__VA_ARGS__)

static const struct nps_csv_column columns[] = {
	NPS_CSV_COL("Step Id", NUMBER_OR_BLANK, step, id, .source = STEP_SOURCE, .when = STEPS),
	TASK("Device_id", DEVICE, device, .when = NPS_CSV_B),
	COMM_CELL(DEVICE, device),
	TASK("Model ID", NUMBER, model, .when = FULL),
	COMM_CELL(NUMBER, model),
	TASK("Task ID", NUMBER, task, .when = FULL),
	TASK("Stream ID", NUMBER, stream, .when = FULL),
	KERNEL("Name", TEXT, name, .msprof = "Op Name"),
	COMM_CELL(TEXT, name),
	KERNEL("Type", TEXT, type, .msprof = "OP Type"),
	COMM_CELL(TEXT, type),
	KERNEL("OP State", TEXT, state, .when = FULL),
	KERNEL("Accelerator Core", TEXT, core, .msprof = "Task Type"),
	COMM_SAME("HCCL", .when = NPS_CSV_A),
	COMM_SAME("COMMUNICATION", .when = NPS_CSV_B),
	TASK("Start Time(us)", TIME, start, .msprof = "Task Start Time(us)"),
	COMM_CELL(TIME, start),
	NPS_CSV_FIELD("Duration(us)", SPAN_OR_BLANK, struct kernels, duration, .source = OWN_SOURCE,
		      .msprof = "Task Duration(us)"),
	NPS_CSV_BY("Wait Time(us)", put_kernel_wait, .msprof = "Task Wait Time(us)"),
	KERNEL("Block Dim", NUMBER, blocks, .when = NPS_CSV_A),
	COMM_SAME("0"),
	KERNEL("Block Num", NUMBER, blocks, .when = NPS_CSV_B),
	COMM_SAME("0"),
	KERNEL("Mix Block Dim", NUMBER, mix_blocks, .when = FULL | NPS_CSV_A),
	KERNEL("Mix Block Num", NUMBER, mix_blocks, .when = FULL | NPS_CSV_B),
	COMM_SAME("0"),
	KERNEL("HF32 Eligible", TEXT, hf32, .when = FULL),
	KERNEL("Input Shapes", SHAPES, input_shapes, .when = FULL),
	KERNEL("Input Data Types", TEXT, input_types, .when = FULL),
	KERNEL("Input Formats", TEXT, input_formats, .when = FULL),
	KERNEL("Output Shapes", SHAPES, output_shapes, .when = FULL),
	KERNEL("Output Data Types", TEXT, output_types, .when = FULL),
	KERNEL("Output Formats", TEXT, output_formats, .when = FULL),
	TASK("Context ID", ID, context, .when = FULL),
};

static const struct nps_csv_table table = { "kernel_details", "op_summary", .crlf = true,
					    NPS_CSV_OF(compute, columns) };

int nps_csv__kernels(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	bool torch = m->layout == NPS_LAYOUT_TORCH, full = !torch || m->level;
	struct kernels k = { .m = m, .walk.m = m };
	struct nps_csv_input input = { .when = (full ? FULL : 0) | (torch && m->step.t.len ? STEPS : 0),
				       .next = kernel_next,
				       .ctx = &k,
				       .sources = { [TASK_SOURCE].table = &m->task.t,
						    [COMM_SOURCE].table = &m->comm_op.t,
						    [STEP_SOURCE].table = &m->step.t,
						    [OWN_SOURCE].structs = &k,
						    [PMU_SOURCE].structs = &k.pmu } };
	int err = 0;

	if (full) {
		nps_pmu__init(&k.pmu, m, PMU_SOURCE);
		input.more = nps_pmu__columns(&k.pmu);
	}
	nps_vec__init(&k.walk.order, m->tmpfd, sizeof(uint32_t));
	if (!one_device(m))
		err = order_by_device(&k.walk);
	err = err ? err : nps_csv_table__write(ex, dirfd, &table, &input);
	nps_vec__free(&k.walk.order);
	return err;
}
