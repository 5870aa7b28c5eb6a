/* SPDX-License-Identifier: BSD-2-Clause */
/* The NPU's driver: a layer of the trace, and a table of its calls. */
#include "base/csv_writer.h"
#include "base/map.h"
#include "export/trace_event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nps_trace__driver(struct nps_trace *t, size_t row)
{
	const struct nps_driver_table *d = &t->m->driver;
	const char *error = d->result[row] < 0 ? strerrorname_np((int)-d->result[row]) : NULL;
	struct nps_writer *w = &t->w;
	char command[16];

	nps_trace__slice(w, nps_trace__text(t, d->name[row]), nps_trace__pid(t, NPS_TRACE_DRIVER, 0),
			 (uint32_t)d->gtid[row], d->start[row], d->end[row]);
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

struct sum {
	uint32_t name;
	uint64_t count, errors, total;
	size_t first; /* of its keys */
};

/* The call's time that 99 % do not exceed: the smallest such one. */
static uint64_t percentile(const struct nps_key *keys, const struct sum *s)
{
	return keys[s->first + (s->count * 99 + 99) / 100 - 1].key;
}

static void put_sum(struct nps_csv *csv, const struct nps_key *keys, const struct sum *s)
{
	nps_csv__row(csv);
	nps_csv__text(csv, s->name);
	nps_csv__u64(csv, s->count);
	nps_csv__u64(csv, s->errors);
	nps_csv__milli(csv, s->total);
	nps_csv__milli(csv, s->total / s->count);
	nps_csv__milli(csv, keys[s->first].key);
	nps_csv__milli(csv, keys[s->first + s->count - 1].key);
	nps_csv__milli(csv, percentile(keys, s));
	nps_csv__end(csv);
}

static int by_total(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return x->total != y->total ? (x->total < y->total ? 1 : -1) : x->first < y->first ? -1 : 1;
}

/* Keys by name, then by how long: a call's times stand together and ascend. */
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

static int sum_up(const struct nps_driver_table *d, const struct nps_key *keys, struct nps_vec *sums)
{
	struct sum *s = NULL;

	for (size_t i = 0; i < d->t.len; i++) {
		if (!s || s->name != keys[i].group) {
			s = nps_vec__push(sums);
			if (!s)
				return -errno;
			*s = (struct sum){ .name = keys[i].group, .first = i };
		}
		s->count++;
		s->total += keys[i].key;
		s->errors += d->result[keys[i].row] < 0;
	}
	return 0;
}

static int statistic(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "driver_statistic",
					   .header =
						   "Name,Count,Errors,Total Time(us),Avg(us),Min(us),Max(us),"
						   "P99(us)" };
	const struct nps_driver_table *d = &ex->model->driver;
	struct nps_vec keys, sums;
	struct nps_csv *csv;
	int err;

	if (!d->t.len)
		return 0;
	nps_vec__init(&keys, ex->model->tmpfd, sizeof(struct nps_key));
	nps_vec__init(&sums, ex->model->tmpfd, sizeof(struct sum));
	err = sort_calls(d, &keys);
	if (!err)
		err = sum_up(d, keys.data, &sums);
	if (!err) {
		csv = nps_csv__new(ex, dirfd, &file);
		qsort(sums.data, sums.len, sizeof(struct sum), by_total);
		for (size_t i = 0; csv && i < sums.len; i++)
			put_sum(csv, keys.data, &NPS_AT(&sums, struct sum, i));
		err = nps_csv__close(csv);
	}
	nps_vec__free(&keys);
	nps_vec__free(&sums);
	return err;
}

/* --- npuscope_driver_tasks.csv --- */

static void put_number(struct nps_csv *csv, int64_t value, void (*put)(struct nps_csv *csv, uint64_t value))
{
	if (value == NPS_NULL)
		nps_csv__lit(csv, "N/A");
	else
		put(csv, (uint64_t)value);
}

static int tasks(const struct nps_export *ex, int dirfd)
{
	const struct nps_csv_file file = { .stem = "npuscope_driver_tasks",
					   .header = "Process ID,Device_id,Stream ID,Task ID,SQ ID,SQE "
						     "Type,Name,Submit(us),In Driver(us),Queued(us),"
						     "Driver(us)" };
	const struct nps_driver_task_table *t = &ex->model->driver_task;
	struct nps_csv *csv = nps_csv__new(ex, dirfd, &file);

	for (size_t i = 0; csv && i < t->t.len; i++) {
		nps_csv__row(csv);
		nps_csv__u64(csv, t->gtid[i] >> 32);
		nps_csv__u64(csv, t->device[i]);
		nps_csv__u64(csv, t->stream[i]);
		put_number(csv, t->task[i], nps_csv__u64);
		nps_csv__u64(csv, t->queue[i]);
		nps_csv__u64(csv, t->type[i]);
		if (t->name[i] == NPS_NONE)
			nps_csv__lit(csv, "N/A");
		else
			nps_csv__text(csv, t->name[i]);
		if (t->queued[i] == NPS_NULL) {
			nps_csv__lit(csv, "N/A");
			nps_csv__time(csv, t->start[i]);
			nps_csv__lit(csv, "N/A");
		} else {
			nps_csv__time(csv, t->submit[i]);
			nps_csv__time(csv, t->start[i]);
			nps_csv__milli(csv, (uint64_t)t->queued[i]);
		}
		put_number(csv, t->took[i], nps_csv__milli);
		nps_csv__end(csv);
	}
	return nps_csv__close(csv);
}

int nps_export__driver_csv(const struct nps_export *ex, int dirfd)
{
	int err = statistic(ex, dirfd);

	return err ? err : tasks(ex, dirfd);
}
