/* SPDX-License-Identifier: BSD-2-Clause */
/* Where host time went: a table of our own. */
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

int nps_export__host_csv(const struct nps_export *ex, int dirfd)
{
	return nps_csv_table__write(ex, dirfd, &table, NULL);
}
