/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of single tasks: times, cache counters, AI CPU. */
#include "export/csv_tables.h"

#include <errno.h>
#include <string.h>

/* The core of task ROW, where it is a kernel whose core is known, else the runtime's type; *COMPUTE goes along. */
static uint32_t type_of(const struct nps_model *m, size_t row, size_t *compute)
{
	const struct nps_compute_table *t = &m->compute;

	while (*compute < t->t.len && t->task[*compute] < row)
		++*compute;
	if (*compute < t->t.len && t->task[*compute] == row && t->core[*compute] != NPS_NONE &&
	    strcmp(nps_model__text(m, t->core[*compute]), "N/A") != 0)
		return t->core[*compute];
	return m->task.type[row];
}

int nps_csv__task_time(const struct nps_export *ex, int dirfd, bool stamped)
{
	const struct nps_csv_file file = { .stem = "task_time",
					   .header =
						   "kernel_name,kernel_type,stream_id,task_id,task_time(us),"
						   "task_start(us),task_stop(us)",
					   .stamped = stamped,
					   .device = true };
	const struct nps_task_table *t = &ex->model->task;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);
	size_t compute = 0;

	/* As the vendor's: what the runtime submitted, by the function's name, and what it runs on. */
	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__text(csv, t->kernel[i] != NPS_NONE ? t->kernel[i] : t->name[i]);
		nps_csv__text(csv, type_of(ex->model, i, &compute));
		nps_csv__u64(csv, t->stream[i]);
		nps_csv__u64(csv, t->task[i]);
		if (nps_model__task_measured(ex->model, i))
			nps_csv__short(csv, t->end[i] > t->start[i] ? t->end[i] - t->start[i] : 0);
		else
			nps_csv__lit(csv, "N/A");
		nps_csv__time(csv, t->start[i]);
		if (nps_model__task_measured(ex->model, i))
			nps_csv__time(csv, t->end[i]);
		else
			nps_csv__lit(csv, "N/A");
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

/* VALUES: columns of numbers, one or two. */
static int task_counter(const struct nps_export *ex, int dirfd, const struct nps_csv_file *file,
			const struct nps_task_counter_table *t, int values)
{
	struct nps_csv *csv = nps_csv__new(ex, dirfd, file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__u64(csv, t->stream[i]);
		nps_csv__u64(csv, t->task[i]);
		if (values == 1 && t->first[i] >= 0 && t->first[i] < 1e18)
			nps_csv__u64(csv, (uint64_t)t->first[i]);
		else
			nps_csv__repr(csv, t->first[i]);
		if (values > 1)
			nps_csv__repr(csv, t->second[i]);
		nps_csv__text(csv, t->name[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

int nps_csv__task_counters(const struct nps_export *ex, int dirfd, bool stamped)
{
	const struct nps_csv_file l2_cache = { .stem = "l2_cache",
					       .header = "Stream Id,Task Id,Hit Rate,Victim Rate,Op Name",
					       .stamped = stamped,
					       .device = true };
	const struct nps_csv_file soc_pmu = { .stem = "soc_pmu",
					      .header =
						      "Stream Id,Task Id,TLB Hit Rate,TLB Miss Rate,Op Name",
					      .stamped = stamped,
					      .device = true };
	const struct nps_csv_file page_fault = { .stem = "page_fault",
						 .header = "Stream Id,Task Id,Page Fault Num,Op Name",
						 .stamped = stamped,
						 .device = true };
	const struct nps_model *m = ex->model;
	int err = task_counter(ex, dirfd, &l2_cache, &m->l2_cache, 2);

	if (!err && (stamped || ex->generation == NPS_GENERATION_B))
		err = task_counter(ex, dirfd, &soc_pmu, &m->soc_pmu, 2);
	if (!err && stamped)
		err = task_counter(ex, dirfd, &page_fault, &m->page_fault, 1);
	return err;
}

int nps_csv__aicpu(const struct nps_export *ex, int dirfd, const char *stem, bool stamped)
{
	const struct nps_csv_file file = { .stem = stem,
					   .header =
						   "Timestamp(us),Node,Compute_time(us),Memcpy_time(us),"
						   "Task_time(us),Dispatch_time(us),Total_time(us),Stream ID,"
						   "Task ID",
					   .stamped = stamped,
					   .device = true };
	const struct nps_aicpu_table *t = &ex->model->aicpu;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		nps_csv__time(csv, t->timestamp[i]);
		nps_csv__text(csv, t->node[i]);
		nps_csv__repr(csv, t->compute[i]);
		nps_csv__repr(csv, t->memcpy[i]);
		nps_csv__repr(csv, t->task_time[i]);
		nps_csv__repr(csv, t->dispatch[i]);
		nps_csv__repr(csv, t->total[i]);
		nps_csv__id(csv, t->stream[i]);
		nps_csv__id(csv, t->task[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}
