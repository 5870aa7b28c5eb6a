/* SPDX-License-Identifier: BSD-2-Clause */
/* Where host time went: a table of our own. */
#include "base/csv_writer.h"
#include "derive/host.h"

static void put_step(struct nps_csv *csv, uint32_t step)
{
	if (*nps_model__text(csv->model, step))
		nps_csv__text(csv, step);
	else
		nps_csv__empty(csv);
}

int nps_export__host_csv(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = {
		.stem = "npuscope_host_breakdown",
		.header = "Step,Process ID,Thread ID,Thread Name,Start(us),Duration(us),User Code(us),CANN "
			  "Calls(us),"
			  "I/O Calls(us),Other System Calls(us),Device Wait(us),Lock Wait(us),CPU Wait(us),"
			  "I/O Wait(us),Page Faults(us),Interrupts(us),Other Sleep(us),Not Observed(us)"
	};
	const struct nps_host_breakdown_table *t = &ex->model->host_breakdown;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	if (csv && !t->t.len)
		nps_csv__without_rows(csv, NPS_ASKED_OS);
	for (size_t i = 0; csv && i < t->t.len; i++) {
		uint64_t parts[NPS_HOST_PARTS];

		nps_host_breakdown__parts(ex->model, i, parts);
		nps_csv__row(csv);
		put_step(csv, t->step[i]);
		nps_csv__u64(csv, t->gtid[i] >> 32);
		nps_csv__u64(csv, t->gtid[i] & UINT32_MAX);
		nps_csv__text(csv, t->comm[i]);
		nps_csv__time(csv, t->start[i]);
		nps_csv__milli(csv, t->end[i] - t->start[i]);
		for (size_t part = 0; part < NPS_HOST_PARTS; part++)
			if (part == NPS_HOST_INTERRUPTS && t->interrupts[i] == NPS_NULL)
				nps_csv__lit(csv, "N/A");
			else
				nps_csv__milli(csv, parts[part]);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}
