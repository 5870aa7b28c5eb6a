/* SPDX-License-Identifier: BSD-2-Clause */
/* The NPU's driver: a layer of the trace, and a table of its calls. */
#include "base/map.h"
#include "export/table.h"
#include "export/trace_event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nps_trace__driver(struct nps_trace *t, const struct nps_item *item)
{
	size_t row = item->row;
	const struct nps_driver_table *d = &t->m->driver;
	const char *error = d->result[row] < 0 ? strerrorname_np((int)-d->result[row]) : NULL;
	struct nps_writer *w = &t->w;
	char command[16];

	nps_trace__item(t, item, nps_trace__pid(t, NPS_TRACE_DRIVER, 0));
	nps_trace__string(w, ",\"args\":{\"node\":", nps_trace__text(t, d->node[row]));
	if (d->command[row]) {
		snprintf(command, sizeof(command), "0x%x", d->command[row]);
		nps_trace__string(w, ",\"cmd\":", command);
	}
	if (d->device[row] != NPS_NULL)
		nps_trace__u64(w, ",\"device\":", (uint64_t)d->device[row]);
	if (d->bytes[row] != NPS_NULL)
		nps_trace__u64(w, ",\"bytes\":", (uint64_t)d->bytes[row]);
	if (error) {
		nps_trace__string(w, ",\"error\":", error);
	} else {
		nps_writer__lit(w, ",\"result\":");
		nps_writer__i64(w, d->result[row]);
	}
	nps_writer__lit(w, "}");
	nps_trace__end(w);
}

/* --- driver_statistic.csv --- */

struct driver_call_sum {
	uint32_t name;
	uint64_t count, errors, total;
	size_t first; /* of its keys */
	uint64_t mean, least, most, p99; /* cells, ns */
};

#define SUM(title, format, member) NPS_CSV_FIELD(title, format, struct driver_call_sum, member)

static const struct nps_csv_column sum_columns[] = {
	SUM("Name", TEXT, name),       SUM("Count", NUMBER, count),
	SUM("Errors", NUMBER, errors), SUM("Total Time(us)", MILLI, total),
	SUM("Avg(us)", MILLI, mean),   SUM("Min(us)", MILLI, least),
	SUM("Max(us)", MILLI, most),   SUM("P99(us)", MILLI, p99),
};

/* The call's time that 99 % do not exceed: the smallest such one. */
static uint64_t percentile(const struct nps_key *keys, const struct driver_call_sum *s)
{
	return keys[s->first + (s->count * 99 + 99) / 100 - 1].key;
}

static void set_cells(const struct nps_key *keys, struct driver_call_sum *s)
{
	s->mean = s->total / s->count;
	s->least = keys[s->first].key;
	s->most = keys[s->first + s->count - 1].key;
	s->p99 = percentile(keys, s);
}

static int driver_compare_total(const void *a, const void *b)
{
	const struct driver_call_sum *x = a, *y = b;

	return x->total != y->total ? (x->total < y->total ? 1 : -1) : x->first < y->first ? -1 : 1;
}

/* Sorts keys by name, then by length, so that the times of a call are together and ascend. */
static int sort_calls(const struct nps_driver_table *d, struct nps_vec *keys)
{
	size_t n = d->t.len;
	struct nps_key *k;
	int err = n >= NPS_NONE ? -EOVERFLOW : nps_vec__resize(keys, 2 * n);

	if (err)
		return err;
	k = keys->data;
	for (size_t i = 0; i < n; i++)
		k[i] = (struct nps_key){ .key = d->end[i] - d->start[i],
					 .row = (uint32_t)i,
					 .group = d->name[i] };
	nps_sort_keys(k, k + n, n);
	nps_sort_groups(k, k + n, n);
	return 0;
}

static int driver_sum(const struct nps_driver_table *d, const struct nps_key *keys, struct nps_vec *sums)
{
	struct driver_call_sum *s = NULL;

	for (size_t i = 0; i < d->t.len; i++) {
		if (!s || s->name != keys[i].group) {
			s = nps_vec__push(sums);
			if (!s)
				return -errno;
			*s = (struct driver_call_sum){ .name = keys[i].group, .first = i };
		}
		s->count++;
		s->total += keys[i].key;
		s->errors += d->result[keys[i].row] < 0;
	}
	return 0;
}

static int statistic(const struct nps_export *ex, int dirfd)
{
	static const struct nps_csv_table table = { "driver_statistic", .unstamped = true,
						    .columns = NPS_CSV_COLUMNS(sum_columns) };
	const struct nps_driver_table *d = &ex->model->driver;
	struct nps_vec keys, sums;
	int err;

	if (!d->t.len)
		return 0;
	nps_vec__init(&keys, ex->model->tmpfd, sizeof(struct nps_key));
	nps_vec__init(&sums, ex->model->tmpfd, sizeof(struct driver_call_sum));
	err = sort_calls(d, &keys);
	err = err ? err : driver_sum(d, keys.data, &sums);
	if (err)
		goto out;
	for (size_t i = 0; i < sums.len; i++)
		set_cells(keys.data, &NPS_AT(&sums, struct driver_call_sum, i));
	qsort(sums.data, sums.len, sizeof(struct driver_call_sum), driver_compare_total);
	err = nps_csv_table__write_structs(ex, dirfd, &table, &sums);
out:
	nps_vec__free(&keys);
	nps_vec__free(&sums);
	return err;
}

/* --- npuscope_driver_tasks.csv --- */

static void put_submit(struct nps_csv *csv, void *ctx, const struct nps_csv_row *row)
{
	const struct nps_driver_task_table *t = &csv->model->driver_task;

	(void)ctx;
	if (t->queued[row->at[0]] == NPS_NULL)
		nps_csv__lit(csv, "N/A");
	else
		nps_csv__time(csv, t->submit[row->at[0]]);
}

#define TASK(title, format, column) NPS_CSV_COL(title, format, driver_task, column)

static const struct nps_csv_column task_columns[] = {
	TASK("Process ID", PID, gtid),
	TASK("Device_id", NUMBER, device),
	TASK("Stream ID", NUMBER, stream),
	TASK("Task ID", NUMBER, task),
	TASK("SQ ID", NUMBER, queue),
	TASK("SQE Type", NUMBER, type),
	TASK("Name", TEXT, name),
	NPS_CSV_BY("Submit(us)", put_submit),
	TASK("In Driver(us)", TIME, start),
	TASK("Queued(us)", MILLI, queued),
	TASK("Driver(us)", MILLI, driver_ns),
};

static const struct nps_csv_table task_table = { "npuscope_driver_tasks", .unstamped = true,
						 NPS_CSV_OF(driver_task, task_columns) };

int nps_export__driver_csv(const struct nps_export *ex, int dirfd)
{
	int err = statistic(ex, dirfd);

	return err ? err : nps_csv_table__write(ex, dirfd, &task_table, NULL);
}
