/* SPDX-License-Identifier: BSD-2-Clause */
/* step_trace of msprof's layout: iterations of graphs, with two columns for each of their reductions. */
#include "export/csv_tables.h"
#include "export/table.h"

#include <errno.h>
#include <stdlib.h>

#define REDUCES_MAX 45 /* pairs of columns: a viewer refuses more than a hundred columns */

struct iteration_parts {
	struct iteration_part {
		uint32_t device, model, row;
		uint64_t id;
	} * all; /* reductions by iteration */
	size_t len;
};

static int part_compare(const struct iteration_part *a, const struct iteration_part *b)
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
	const struct iteration_part *x = a, *y = b;
	int order = part_compare(x, y);

	return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

static int parts_collect(const struct nps_model *m, struct iteration_parts *parts)
{
	const struct nps_iteration_part_table *t = &m->iteration_part;

	parts->all = malloc(t->t.len * sizeof(*parts->all) + 1);
	if (!parts->all)
		return -ENOMEM;
	for (size_t i = 0; i < t->t.len; i++)
		if (!t->kind[i])
			parts->all[parts->len++] =
				(struct iteration_part){ t->device[i], t->model[i], i, t->id[i] };
	qsort(parts->all, parts->len, sizeof(*parts->all), by_iteration);
	return 0;
}

static struct iteration_part *first_of(const struct iteration_parts *parts, const struct iteration_part *key)
{
	size_t low = 0, high = parts->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (part_compare(&parts->all[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return parts->all + low;
}

static size_t longest_run(const struct iteration_parts *parts)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < parts->len; i++) {
		run = i && !part_compare(&parts->all[i - 1], &parts->all[i]) ? run + 1 : 1;
		longest = NPS_MAX(longest, run);
	}
	return NPS_MIN(longest, (size_t)REDUCES_MAX);
}

/* What a row of `iteration` does not hold itself. Points in time 0: not known; lengths NPS_NULL. */
struct iteration_row {
	const struct nps_model *m;
	size_t next; /* row of `iteration` */
	struct iteration_parts parts;
	size_t reduces_len;
	int64_t whole, fp_to_bp, refresh, augmentation;
	struct reduce {
		uint64_t start;
		int64_t length;
	} reduces[REDUCES_MAX];
};

static int64_t length(uint64_t from, uint64_t to)
{
	return from && to >= from ? (int64_t)(to - from) : NPS_NULL;
}

static void set_reduces(struct iteration_row *r, const struct iteration_part *key)
{
	const struct nps_iteration_part_table *t = &r->m->iteration_part;
	const struct iteration_part *part = first_of(&r->parts, key), *end = r->parts.all + r->parts.len;

	for (size_t i = 0; i < r->reduces_len; i++) {
		bool mine = part < end && !part_compare(part, key);

		r->reduces[i].start = mine ? t->start[part->row] : 0;
		r->reduces[i].length = mine ? length(t->start[part->row], t->end[part->row]) : NPS_NULL;
		part += mine;
	}
}

static bool iteration_next(void *ctx, struct nps_csv_row *row)
{
	struct iteration_row *r = ctx;
	const struct nps_iteration_table *t = &r->m->iteration;
	size_t i = r->next++;

	if (i >= t->t.len)
		return false;
	row->at[0] = i;
	r->whole = length(t->start[i], t->end[i]);
	r->fp_to_bp = length(t->fp_start[i], t->bp_end[i]);
	r->refresh = length(t->bp_end[i], t->end[i]);
	r->augmentation = length(t->start[i], t->fp_start[i]);
	set_reduces(r, &(struct iteration_part){ t->device[i], t->model[i], 0, t->id[i] });
	return true;
}

#define OWN(title, format, member) NPS_CSV_FIELD(title, format, struct iteration_row, member, .source = 1)

static const struct nps_csv_column columns[] = {
	NPS_CSV_DEVICE_ID(iteration),
	NPS_CSV_COL("Iteration ID", NUMBER, iteration, id),
	NPS_CSV_COL("FP Start(us)", TIME_NOT_0, iteration, fp_start),
	NPS_CSV_COL("BP End(us)", TIME_NOT_0, iteration, bp_end),
	NPS_CSV_COL("Iteration End(us)", TIME_NOT_0, iteration, end),
	OWN("Iteration Time(us)", SHORT, whole),
	OWN("FP to BP Time(us)", SHORT, fp_to_bp),
	OWN("Iteration Refresh(us)", SHORT, refresh),
	OWN("Data Aug Bound(us)", SHORT, augmentation),
	NPS_CSV_COL("Model ID", NUMBER, iteration, model),
};

static const struct nps_csv_column reduce_columns[] = {
	OWN("Reduce Start(us)", TIME_NOT_0, reduces[0].start),
	OWN("Reduce Duration(us)", SHORT, reduces[0].length),
};

static const struct nps_csv_table table = { "step_trace", NPS_CSV_OF(iteration, columns) };

int nps_csv__step_trace(const struct nps_export *ex, int dirfd)
{
	struct nps_csv_column more[2 * REDUCES_MAX];
	struct iteration_row row = { .m = ex->model };
	int err = parts_collect(ex->model, &row.parts);

	if (err)
		return err;
	row.reduces_len = longest_run(&row.parts);
	for (size_t i = 0; i < 2 * row.reduces_len; i++) {
		more[i] = reduce_columns[i % 2];
		more[i].offset += i / 2 * sizeof(struct reduce);
	}
	err = nps_csv_table__write(ex, dirfd, &table,
				   &(struct nps_csv_input){ .sources[1].structs = &row,
							    .more = { more, 2 * row.reduces_len },
							    .next = iteration_next,
							    .ctx = &row });
	free(row.parts.all);
	return err;
}
