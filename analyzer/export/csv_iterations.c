/* SPDX-License-Identifier: BSD-2-Clause */
/* step_trace of msprof's layout: iterations of graphs, with a pair of columns for each reduction of the longest. */
#include "export/csv_tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define REDUCES_MAX 45 /* pairs of columns: a viewer refuses more than a hundred columns */
#define HEADER_MAX 8192

struct parts {
	struct part {
		uint32_t device, model, row;
		uint64_t id;
	} * all; /* reductions by iteration */
	size_t len;
};

static int compare(const struct part *a, const struct part *b)
{
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->model != b->model)
		return a->model < b->model ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return 0;
}

static int by_iteration(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	int order = compare(x, y);

	return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

static int collect(const struct nps_model *m, struct parts *parts)
{
	const struct nps_iteration_part_table *t = &m->iteration_part;

	parts->all = malloc(t->t.len * sizeof(*parts->all) + 1);
	if (!parts->all)
		return -ENOMEM;
	for (size_t i = 0; i < t->t.len; i++)
		if (!t->kind[i])
			parts->all[parts->len++] = (struct part){ t->device[i], t->model[i], i, t->id[i] };
	qsort(parts->all, parts->len, sizeof(*parts->all), by_iteration);
	return 0;
}

static struct part *first_of(const struct parts *parts, const struct part *key)
{
	size_t low = 0, high = parts->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&parts->all[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return parts->all + low;
}

static size_t longest_run(const struct parts *parts)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < parts->len; i++) {
		run = i && !compare(&parts->all[i - 1], &parts->all[i]) ? run + 1 : 1;
		longest = NPS_MAX(longest, run);
	}
	return NPS_MIN(longest, (size_t)REDUCES_MAX);
}

static void put_point(struct nps_csv *csv, uint64_t time)
{
	if (time)
		nps_csv__time(csv, time);
	else
		nps_csv__lit(csv, "N/A");
}

static void put_span(struct nps_csv *csv, uint64_t from, uint64_t to)
{
	if (from && to >= from)
		nps_csv__short(csv, to - from);
	else
		nps_csv__lit(csv, "N/A");
}

static void put_reduces(struct nps_csv *csv, const struct parts *parts, const struct part *key, size_t pairs)
{
	const struct nps_iteration_part_table *t = &csv->model->iteration_part;
	const struct part *part = first_of(parts, key), *end = parts->all + parts->len;

	for (; pairs; pairs--) {
		bool mine = part < end && !compare(part, key);

		put_point(csv, mine ? t->start[part->row] : 0);
		put_span(csv, mine ? t->start[part->row] : 0, mine ? t->end[part->row] : 0);
		part += mine;
	}
}

static void row(struct nps_csv *csv, size_t i, const struct parts *parts, size_t pairs)
{
	const struct nps_iteration_table *t = &csv->model->iteration;
	const struct part key = { t->device[i], t->model[i], 0, t->id[i] };

	nps_csv__row(csv);
	nps_csv__device(csv, t->device[i]);
	nps_csv__u64(csv, t->id[i]);
	put_point(csv, t->fp_start[i]);
	put_point(csv, t->bp_end[i]);
	put_point(csv, t->end[i]);
	put_span(csv, t->start[i], t->end[i]);
	put_span(csv, t->fp_start[i], t->bp_end[i]);
	put_span(csv, t->bp_end[i], t->end[i]);
	put_span(csv, t->start[i], t->fp_start[i]);
	nps_csv__u64(csv, t->model[i]);
	put_reduces(csv, parts, &key, pairs);
	nps_csv__end(csv);
}

int nps_csv__step_trace(const struct nps_export *ex, int dirfd)
{
	char header[HEADER_MAX] = "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),"
				  "FP to BP Time(us),Iteration Refresh(us),Data Aug Bound(us),Model ID";
	const struct nps_csv_file file = {
		.stem = "step_trace", .header = header, .stamped = true, .device = true
	};
	struct parts parts = { 0 };
	struct nps_csv *csv;
	size_t pairs;
	int err = collect(ex->model, &parts);

	if (err)
		return err;
	pairs = longest_run(&parts);
	for (size_t i = 0; i < pairs; i++)
		strcat(header, ",Reduce Start(us),Reduce Duration(us)");
	csv = nps_csv__new(ex, dirfd, &file);
	for (size_t i = 0; csv && i < ex->model->iteration.t.len; i++)
		row(csv, i, &parts, pairs);
	err = nps_csv__close(csv);
	free(parts.all);
	return err;
}
