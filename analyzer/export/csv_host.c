/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of our own: where host time went; steps that were found. */
#include "derive/host.h"
#include "export/table.h"

static void put_duration(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const struct nps_host_breakdown_table *t = &csv->model->host_breakdown;

	(void)ctx;
	nps_csv__milli(csv, t->end[row->at[0]] - t->start[row->at[0]]);
}

#define COL(title, format, column) NPS_CSV_COL(title, format, host_breakdown, column)

static const struct nps_csv_column columns[] = {
	COL("Step", TEXT_OR_BLANK, step),
	COL("Process ID", PID, gtid),
	COL("Thread ID", TID, gtid),
	COL("Thread Name", TEXT, comm),
	COL("Start(us)", TIME, start),
	NPS_CSV_BY("Duration(us)", put_duration),
	COL("User Code(us)", MILLI, user),
	COL("CANN Calls(us)", MILLI, cann),
	COL("I/O Calls(us)", MILLI, io_calls),
	COL("Other System Calls(us)", MILLI, other_calls),
	COL("Device Wait(us)", MILLI, device_wait),
	COL("Lock Wait(us)", MILLI, lock_wait),
	COL("CPU Wait(us)", MILLI, cpu_wait),
	COL("I/O Wait(us)", MILLI, io_wait),
	COL("Page Faults(us)", MILLI, faults),
	COL("Interrupts(us)", MILLI, interrupts),
	COL("Other Sleep(us)", MILLI, sleep),
	COL("Not Observed(us)", MILLI, unknown),
};

static const struct nps_csv_table table = { "npuscope_host_breakdown", .unstamped = true,
					    .requested = NPS_REQUESTED_OS,
					    NPS_CSV_OF(host_breakdown, columns) };

static void put_step_duration(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const struct nps_found_step_table *t = &csv->model->found_step;

	(void)ctx;
	nps_csv__milli(csv, t->end[row->at[0]] - t->start[row->at[0]]);
}

#define STEP_COL(title, format, column) NPS_CSV_COL(title, format, found_step, column)

static const struct nps_csv_column step_columns[] = {
	STEP_COL("Step", NUMBER, id),
	STEP_COL("Start(us)", TIME, start),
	NPS_CSV_BY("Duration(us)", put_step_duration),
	STEP_COL("Source", TEXT, source),
	STEP_COL("Confidence", DECIMAL, confidence),
	STEP_COL("Kind", NUMBER, kind),
	STEP_COL("Role", TEXT_OR_BLANK, role),
	STEP_COL("Irregular", NUMBER, irregular),
};

static const struct nps_csv_table step_table = { "npuscope_steps", .unstamped = true,
						 NPS_CSV_OF(found_step, step_columns) };

int nps_export__host_csv(const struct nps_export *ex, int dirfd)
{
	int err = nps_csv_table__write(ex, dirfd, &table, NULL);

	return err ? err : nps_csv_table__write(ex, dirfd, &step_table, NULL);
}
