/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the torch layout (outputs 1.2, 3.1, 3.2): which there are depends on the profiler's level. */
#include "export/csv_tables.h"
#include "export/table.h"

/* --- step_trace_time --- */

enum { UNMEASURED = 1 }; /* variant of rows, and source of their cells */

struct step_rows {
	const struct nps_model *m;
	size_t measured, unmeasured; /* next rows of either */
};

/* Steps without times are rows between those of step_trace: the vendor's reader reads N/A as 0. */
static bool next_step(void *ctx, struct nps_csv_row *row)
{
	struct step_rows *r = ctx;
	const struct nps_vec *steps = &r->m->unmeasured_steps;
	size_t at = r->unmeasured;

	if (at < steps->len && NPS_AT(steps, struct nps_unmeasured_step, at).before <= r->measured) {
		*row = (struct nps_csv_row){ .at = { NPS_CSV_NO_ROW, at }, .variant = UNMEASURED };
		r->unmeasured++;
		return true;
	}
	*row = (struct nps_csv_row){ .at = { r->measured } };
	return r->measured++ < r->m->step_trace.t.len;
}

#define UNMEASURED_CELL(format, member)                                                                      \
	NPS_CSV_FIELD(NULL, format, struct nps_unmeasured_step, member, .source = UNMEASURED,                \
		      .variant = UNMEASURED)
#define US(title, column) NPS_CSV_COL(title, SUM_OF_ROW, step_trace, column)

static const struct nps_csv_column step_columns[] = {
	NPS_CSV_DEVICE_ID(step_trace),
	UNMEASURED_CELL(DEVICE, device),
	NPS_CSV_COL("Step", TEXT_OR_BLANK, step_trace, step),
	UNMEASURED_CELL(TEXT_OR_BLANK, step),
	US("Computing", computing),
	US("Communication(Not Overlapped)", not_overlapped),
	US("Overlapped", overlapped),
	US("Communication", communication),
	US("Free", free),
	US("Stage", stage),
	NPS_CSV_COL("Bubble", SUM_INT_0_OF_ROW, step_trace, bubble),
	US("Communication(Not Overlapped and Exclude Receive)", exclude_receive),
	US("Preparing", preparing),
};

static int step_trace_time(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "step_trace_time", .crlf = true,
						    NPS_CSV_OF(step_trace, step_columns) };
	struct step_rows rows = { .m = ex->model };
	const struct nps_vec *steps = &ex->model->unmeasured_steps;

	return nps_csv_table__write(
		ex, dirfd, &table,
		&(struct nps_csv_input){
			.sources[UNMEASURED] = { NULL, steps->data, sizeof(struct nps_unmeasured_step) },
			.next = next_step,
			.ctx = &rows });
}

int nps_export__torch_csv(const struct nps_export *ex, int dirfd)
{
	unsigned int level = ex->model->level;
	nps_csv_write_fn *const tables[] = {
		nps_csv__kernels,
		level ? nps_csv__op_statistic : NULL,
		level ? nps_csv__api_statistic : NULL,
		nps_csv__operator_details,
		nps_csv__torch_memory,
		step_trace_time,
		level > 1 ? nps_csv__aicpu : NULL,
		nps_csv__task_counters,
		ex->generation == NPS_GENERATION_B ? nps_csv__task_time : NULL,
	};

	return nps_csv__write_each(ex, dirfd, tables, NPS_ARRAY_SIZE(tables));
}
