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

static void step_of_device(struct nps_csv *csv, uint32_t device, uint32_t step)
{
	nps_csv__row(csv);
	nps_csv__device(csv, device);
	if (*nps_model__text(csv->ex->model, step))
		nps_csv__text(csv, step);
	else
		nps_csv__empty(csv);
}

/*
 * Rows without times, from *AT on, that precede row BEFORE of step_trace: the vendor's reader reads 0 where
 * there is no number.
 */
static void unmeasured_steps(struct nps_csv *csv, size_t *at, size_t before)
{
	const struct nps_vec *steps = &csv->ex->model->unmeasured_steps;

	for (; *at < steps->len; ++*at) {
		const struct nps_unmeasured_step *step = &NPS_AT(steps, struct nps_unmeasured_step, *at);

		if (step->before > before)
			break;
		step_of_device(csv, step->device, step->step);
		for (int i = 0; i < 9; i++)
			nps_csv__empty(csv);
		nps_csv__end(csv);
	}
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
	size_t unmeasured = 0;

	for (size_t i = 0; csv && i < t->t.len; i++) {
		unmeasured_steps(csv, &unmeasured, i);
		step_of_device(csv, t->device[i], t->step[i]);
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
	if (csv)
		unmeasured_steps(csv, &unmeasured, t->t.len);
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
		err = nps_csv__aicpu(ex, dirfd);
	if (!err)
		err = nps_csv__task_counters(ex, dirfd);
	if (!err && ex->generation == NPS_GENERATION_B)
		err = nps_csv__task_time(ex, dirfd);
	return err;
}
