/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of single tasks: times, cache counters, AI CPU. */
#include "export/csv_tables.h"
#include "export/table.h"

#include <errno.h>
#include <string.h>

/* --- task_time --- */

#define UNMEASURED 1 /* variant of rows */

/* What a row of `task` does not hold itself. */
struct task_row {
	const struct nps_model *m;
	size_t next, compute; /* rows of `task` and of `compute` */
	uint32_t name, type;
	uint64_t length;
};

/* The core of task ROW, if it is a kernel with a known core, else the runtime's type. *COMPUTE: a cursor. */
static uint32_t task_type_text(const struct nps_model *m, size_t row, size_t *compute)
{
	const struct nps_compute_table *t = &m->compute;

	while (*compute < t->t.len && t->task[*compute] < row)
		++*compute;
	if (*compute < t->t.len && t->task[*compute] == row && t->core[*compute] != NPS_NONE &&
	    strcmp(nps_model__text(m, t->core[*compute]), "N/A") != 0)
		return t->core[*compute];
	return m->task.type[row];
}

/* As the vendor's: what the runtime submitted, by the function's name, and what it runs on. */
static bool next_task(void *ctx, struct nps_csv_row *row)
{
	struct task_row *r = ctx;
	const struct nps_task_table *t = &r->m->task;
	size_t i = r->next++;

	if (i >= t->t.len)
		return false;
	r->name = t->kernel[i] != NPS_NONE ? t->kernel[i] : t->name[i];
	r->type = task_type_text(r->m, i, &r->compute);
	r->length = nps_span(t->start[i], t->end[i]);
	row->at[0] = i;
	row->variant = nps_model__task_measured(r->m, i) ? 0 : UNMEASURED;
	return true;
}

#define OWN(title, format, member) NPS_CSV_FIELD(title, format, struct task_row, member, .source = 1)

static const struct nps_csv_column task_time_columns[] = {
	NPS_CSV_DEVICE_ID(task),
	OWN("kernel_name", TEXT, name),
	OWN("kernel_type", TEXT, type),
	NPS_CSV_COL("stream_id", NUMBER, task, stream),
	NPS_CSV_COL("task_id", NUMBER, task, task),
	OWN("task_time(us)", SHORT, length),
	NPS_CSV_NA(UNMEASURED),
	NPS_CSV_COL("task_start(us)", TIME, task, start),
	NPS_CSV_COL("task_stop(us)", TIME, task, end),
	NPS_CSV_NA(UNMEASURED),
};

int nps_csv__task_time(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "task_time", NPS_CSV_OF(task, task_time_columns) };
	struct task_row row = { .m = ex->model };

	return nps_csv_table__write(
		ex, dirfd, &table,
		&(struct nps_csv_input){ .sources[1].structs = &row, .next = next_task, .ctx = &row });
}

/* --- counters of tasks --- */

static void put_page_faults(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	double value = csv->model->page_fault.first[row->at[0]];

	(void)ctx;
	if (value >= 0 && value < 1e18)
		nps_csv__u64(csv, (uint64_t)value);
	else
		nps_csv__repr(csv, value);
}

static const struct nps_csv_column l2_cache_columns[] = {
	NPS_CSV_DEVICE_ID(task_counter),
	NPS_CSV_COL("Stream Id", NUMBER, task_counter, stream),
	NPS_CSV_COL("Task Id", NUMBER, task_counter, task),
	NPS_CSV_COL("Hit Rate", REPR, task_counter, first),
	NPS_CSV_COL("Victim Rate", REPR, task_counter, second),
	NPS_CSV_COL("Op Name", TEXT, task_counter, name),
};

static const struct nps_csv_column soc_pmu_columns[] = {
	NPS_CSV_DEVICE_ID(task_counter),
	NPS_CSV_COL("Stream Id", NUMBER, task_counter, stream),
	NPS_CSV_COL("Task Id", NUMBER, task_counter, task),
	NPS_CSV_COL("TLB Hit Rate", REPR, task_counter, first),
	NPS_CSV_COL("TLB Miss Rate", REPR, task_counter, second),
	NPS_CSV_COL("Op Name", TEXT, task_counter, name),
};

static const struct nps_csv_column page_fault_columns[] = {
	NPS_CSV_DEVICE_ID(task_counter),
	NPS_CSV_COL("Stream Id", NUMBER, task_counter, stream),
	NPS_CSV_COL("Task Id", NUMBER, task_counter, task),
	NPS_CSV_BY("Page Fault Num", put_page_faults),
	NPS_CSV_COL("Op Name", TEXT, task_counter, name),
};

int nps_csv__task_counters(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table l2_cache = { "l2_cache", NPS_CSV_OF(l2_cache, l2_cache_columns) };
	static const struct nps_csv_table soc_pmu = { "soc_pmu", NPS_CSV_OF(soc_pmu, soc_pmu_columns) };
	static const struct nps_csv_table page_fault = { "page_fault",
							 NPS_CSV_OF(page_fault, page_fault_columns) };
	bool msprof = ex->model->layout == NPS_LAYOUT_MSPROF;
	int err = nps_csv_table__write(ex, dirfd, &l2_cache, NULL);

	if (!err && (msprof || ex->generation == NPS_GENERATION_B))
		err = nps_csv_table__write(ex, dirfd, &soc_pmu, NULL);
	if (!err && msprof)
		err = nps_csv_table__write(ex, dirfd, &page_fault, NULL);
	return err;
}

/* --- AI CPU --- */

static const struct nps_csv_column aicpu_columns[] = {
	NPS_CSV_DEVICE_ID(aicpu),
	NPS_CSV_COL("Timestamp(us)", TIME, aicpu, timestamp),
	NPS_CSV_COL("Node", TEXT, aicpu, node),
	NPS_CSV_COL("Compute_time(us)", REPR, aicpu, compute),
	NPS_CSV_COL("Memcpy_time(us)", REPR, aicpu, memcpy),
	NPS_CSV_COL("Task_time(us)", REPR, aicpu, task_time),
	NPS_CSV_COL("Dispatch_time(us)", REPR, aicpu, dispatch),
	NPS_CSV_COL("Total_time(us)", REPR, aicpu, total),
	NPS_CSV_COL("Stream ID", ID, aicpu, stream),
	NPS_CSV_COL("Task ID", ID, aicpu, task),
};

int nps_csv__aicpu(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "data_preprocess", "aicpu",
						    NPS_CSV_OF(aicpu, aicpu_columns) };

	return nps_csv_table__write(ex, dirfd, &table, NULL);
}
