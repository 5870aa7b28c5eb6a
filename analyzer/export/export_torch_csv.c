/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the torch layout (outputs 1.2, 3.1, 3.2): which there are depends on the profiler's level. */
#include "export/csv_tables.h"

#include <errno.h>

/* Microseconds of a sum: B writes three decimals, A what Python's sum of floats prints. */
static void put_us(struct nps_csv *csv, double us)
{
	if (csv->ex->generation == NPS_GENERATION_A || isnan(us) || us < 0)
		nps_csv__repr(csv, us);
	else
		nps_csv__milli(csv, nps_thousandths(us));
}

static int step_trace_time(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "step_trace_time",
		.header = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,"
			  "Bubble,Communication(Not Overlapped and Exclude Receive),Preparing",
		.device = true,
		.crlf = ex->generation == NPS_GENERATION_A
	};
	const struct nps_step_trace_table *t = &ex->model->step_trace;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__device(csv, t->device[i]);
		if (*nps_model__text(ex->model, t->step[i]))
			nps_csv__text(csv, t->step[i]);
		else
			nps_csv__empty(csv);
		put_us(csv, t->computing[i]);
		put_us(csv, t->not_overlapped[i]);
		put_us(csv, t->overlapped[i]);
		put_us(csv, t->communication[i]);
		put_us(csv, t->free[i]);
		put_us(csv, t->stage[i]);
		if (t->bubble[i] == 0) /* an empty sum is an integer */
			nps_csv__lit(csv, "0");
		else
			put_us(csv, t->bubble[i]);
		put_us(csv, t->exclude_receive[i]);
		put_us(csv, t->preparing[i]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

int nps_export__torch_csv(const struct nps_export *ex, int dirfd)
{
	const struct nps_model *m = ex->model;
	int err = nps_csv__kernels(ex, dirfd);

	if (!err && m->level)
		err = nps_csv__op_statistic(ex, dirfd);
	if (!err && m->level)
		err = nps_csv__api_statistic(ex, dirfd);
	if (!err)
		err = nps_csv__operator_details(ex, dirfd);
	if (!err)
		err = nps_csv__torch_memory(ex, dirfd);
	if (!err)
		err = step_trace_time(ex, dirfd);
	if (!err && m->level > 1)
		err = nps_csv__aicpu(ex, dirfd, "data_preprocess", false);
	if (!err)
		err = nps_csv__task_counters(ex, dirfd, false);
	if (!err && ex->generation == NPS_GENERATION_B)
		err = nps_csv__task_time(ex, dirfd, false);
	return err;
}
