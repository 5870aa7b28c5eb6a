/* SPDX-License-Identifier: BSD-2-Clause */
/* npuscope_notes.txt: what cells without a value, and values that stand in for one, mean in this result. */
#include "export/export.h"

#include "base/json_writer.h"

#include <math.h>

struct counts {
	uint64_t kernels, bounded_kernels, collectives, bounded_collectives;
};

static struct counts notes_count(const struct nps_model *m)
{
	struct nps_pace pace = { .model = m };
	struct counts n = { .kernels = m->compute.t.len, .collectives = m->comm_op.t.len };

	for (size_t i = 0; m->bounds.t.len && i < m->compute.t.len; i++, nps_pace__step(&pace))
		n.bounded_kernels += !nps_model__task_measured(m, m->compute.task[i]);
	for (size_t i = 0; i < m->comm_op.t.len; i++, nps_pace__step(&pace))
		n.bounded_collectives += !nps_model__comm_measured(m, i);
	return n;
}

static void put_note_number(struct nps_writer *w, const char *before, uint64_t value)
{
	nps_writer__lit(w, before);
	nps_writer__u64(w, value);
}

/* N of ALL, if there are any. */
static void put_note_part(struct nps_writer *w, uint64_t n, uint64_t all, const char *what)
{
	if (!all)
		return;
	put_note_number(w, " ", n);
	put_note_number(w, " of ", all);
	nps_writer__lit(w, what);
}

static void task_notes(struct nps_writer *w, const struct nps_export *ex, const struct counts *n)
{
	const char *kernels = ex->model->layout == NPS_LAYOUT_TORCH ? "kernel_details" : "op_summary";

	if (!ex->model->bounds.t.len)
		return;
	if (n->bounded_kernels || n->bounded_collectives) {
		nps_writer__lit(w, kernels);
		nps_writer__lit(w, ".csv:");
		put_note_part(w, n->bounded_kernels, n->kernels, " kernels");
		if (n->kernels && n->collectives)
			nps_writer__lit(w, " and");
		put_note_part(w, n->bounded_collectives, n->collectives, " collectives");
		nps_writer__lit(
			w, " have no Duration(us) and no Wait Time(us): their time on the device was not "
			   "measured. The same tasks are N/A in task_time.csv and in no sum of "
			   "op_statistic.csv, "
			   "which has "
			   "N/A for types without a measured task.\n");
	}
	nps_writer__lit(
		w, "trace_view.json, TASK, COMMUNICATION_OP: tasks that were not measured have a length of 1 "
		   "ns (0.001 "
		   "us), the least that viewers show. Between which times they began and ended is in "
		   "start_low_us to "
		   "end_high_us of the trace and in NPUSCOPE_TASK_TIME of the database.\n");
}

static void late_notes(struct nps_writer *w, const struct nps_model *m)
{
	if (m->unnamed_kernels) {
		put_note_number(w, "kernels: ", m->unnamed_kernels);
		nps_writer__lit(w, " are called kernel@0x and their address: ");
		nps_writer__lit(w, m->why_unnamed);
		nps_writer__lit(w, ".\n");
	}
	if (m->shapeless_kernels) {
		put_note_number(w, "shapes: ", m->shapeless_kernels);
		nps_writer__lit(w, " kernels have none: ");
		nps_writer__lit(w, m->why_shapeless);
		nps_writer__lit(w, ".\n");
	}
}

static void step_notes(struct nps_writer *w, const struct nps_model *m)
{
	if (!m->unmeasured_steps.len)
		return;
	put_note_number(w, "step_trace_time.csv: ", m->unmeasured_steps.len);
	nps_writer__lit(
		w,
		" rows have no times, and StepTraceTime lacks them: no device time in them was measured.\n");
}

static bool has_unknown(const double *cells, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (isnan(cells[i]))
			return true;
	return false;
}

static void usage_note(struct nps_writer *w, const char *table, const char *why)
{
	nps_writer__lit(w, table);
	nps_writer__lit(w, ": usage is 0 where it is not known: ");
	nps_writer__lit(w, why);
	nps_writer__lit(w, "\n");
}

static void usage_notes(struct nps_writer *w, const struct nps_export *ex)
{
	const struct nps_model *m = ex->model;

	if (!(ex->formats & NPS_FORMAT_DB))
		return;
	if (has_unknown(m->host_disk.usage, m->host_disk.t.len))
		usage_note(w, "HOST_DISK_USAGE", "the disks' usage is the host's, not a process's.");
	if (has_unknown(m->host_network.usage, m->host_network.t.len))
		usage_note(w, "HOST_NETWORK_USAGE", "the speed of no interface is known.");
}

int nps_export__notes(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	struct counts n = notes_count(m);
	struct nps_writer w;
	int err;

	if (!m->bounds.t.len && !m->unmeasured_steps.len && !m->unnamed_kernels && !m->shapeless_kernels &&
	    !(ex->formats & NPS_FORMAT_DB && (has_unknown(m->host_disk.usage, m->host_disk.t.len) ||
					      has_unknown(m->host_network.usage, m->host_network.t.len))))
		return 0;
	err = nps_writer__open(&w, dirfd, "npuscope_notes.txt");
	if (err)
		return err;
	task_notes(&w, ex, &n);
	step_notes(&w, m);
	late_notes(&w, m);
	usage_notes(&w, ex);
	return nps_writer__close(&w);
}
