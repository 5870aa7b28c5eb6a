/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/sweep.h"

/* A row that begins now; its end may still move. */
static int open_row(struct nps_sweep *sweep, uint32_t type, uint64_t start, uint64_t end,
		    struct nps_overlap_table *table, uint32_t device)
{
	size_t row;
	int err;

	if (!table)
		return 0;
	err = nps_table__add(&table->t, &row);
	if (err)
		return err;
	table->device[row] = device;
	table->start[row] = start;
	table->end[row] = end;
	table->type[row] = type;
	if (type < NPS_ARRAY_SIZE(sweep->row))
		sweep->row[type] = row;
	return 0;
}

/* Adds what is certain if no further interval begins before TIME. */
static int sweep_settle(struct nps_sweep *sweep, uint64_t time, struct nps_overlap_table *table,
			uint32_t device)
{
	uint64_t from = NPS_MAX(sweep->settled, sweep->busy[NPS_OVERLAP_COMPUTE]);
	uint64_t to = NPS_MIN(time, sweep->busy[NPS_OVERLAP_COMM]);
	int err = 0;

	if (from < to) {
		sweep->sums.not_overlapped += to - from;
		if (!sweep->joined)
			err = open_row(sweep, NPS_OVERLAP_COMM_ALONE, from, to, table, device);
		else if (table)
			table->end[sweep->row[NPS_OVERLAP_COMM_ALONE]] = to;
		sweep->joined = true;
		from = to;
	}
	from = NPS_MAX(from, sweep->busy[NPS_OVERLAP_COMM]);
	if (!err && from < time) {
		sweep->sums.free += time - from;
		err = open_row(sweep, NPS_OVERLAP_FREE, from, time, table, device);
	}
	sweep->settled = time;
	return err;
}

int nps_sweep__add(struct nps_sweep *sweep, bool comm, uint64_t start, uint64_t end,
		   struct nps_overlap_table *table, uint32_t device)
{
	uint32_t type = comm ? NPS_OVERLAP_COMM : NPS_OVERLAP_COMPUTE;
	uint64_t *sum = comm ? &sweep->sums.communication : &sweep->sums.computing;
	uint64_t *busy = &sweep->busy[type];
	int err = 0;

	if (!sweep->begun) {
		sweep->begun = true;
		sweep->sums.first = sweep->settled = sweep->busy[0] = sweep->busy[1] = start;
	} else {
		start = NPS_MAX(start,
				sweep->settled); /* even if the input is wrong: time does not go back */
	}
	end = NPS_MAX(start, end);
	err = sweep_settle(sweep, start, table, device);
	if (err)
		return err;
	/* Touching intervals stay apart: one slice for each kernel. */
	if (start < *busy) {
		*sum += end > *busy ? end - *busy : 0;
		if (table && end > *busy)
			table->end[sweep->row[type]] = end;
	} else {
		*sum += end - start;
		err = open_row(sweep, type, start, end, table, device);
		sweep->joined = false;
	}
	*busy = NPS_MAX(*busy, end);
	sweep->sums.last = NPS_MAX(sweep->sums.last, end);
	return err;
}

int nps_sweep__finish(struct nps_sweep *sweep, struct nps_overlap_table *table, uint32_t device)
{
	return sweep->begun ? sweep_settle(sweep, sweep->sums.last, table, device) : 0;
}
