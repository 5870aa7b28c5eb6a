/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of operators in tables that know a task by stream and task id only: l2_cache, soc_pmu, page_fault,
 * aicpu. Task ids are used again, and these tables have no time to distinguish the tasks: the n-th row of
 * an id is that of the n-th kernel of it.
 */
#include "derive/derive.h"

#include "base/ext_sort.h"

struct named {
	struct nps_sort_key key; /* device and stream, task; then the order */
	uint32_t row; /* of the table, or of compute */
	uint32_t unused;
};

/* Whose rows are named. */
struct target {
	struct nps_table *table;
	const nps_cell_u32 *device, *stream, *task;
	nps_cell_text *name;
};

static struct nps_sort_key kernel_key(uint32_t device, uint32_t stream, uint32_t task)
{
	return (struct nps_sort_key){ (uint64_t)device << 32 | stream, task };
}

static int kernel_add(struct nps_ext_sort *sort, struct nps_sort_key key, size_t row)
{
	struct named *named = nps_ext_sort__add(sort);

	if (!named)
		return sort->err;
	*named = (struct named){ .key = key, .row = row };
	return 0;
}

static int kernels_sort(const struct nps_model *m, struct nps_ext_sort *sort)
{
	struct nps_pace pace = { .model = m };
	int err = 0;

	for (size_t i = 0; !err && i < m->compute.t.len; i++) {
		uint32_t task = m->compute.task[i];
		err = kernel_add(
			sort, kernel_key(m->task.device[task], m->task.stream[task], m->task.task[task]), i);
		nps_pace__step(&pace);
	}
	return err ? err : nps_ext_sort__finish(sort);
}

static int target_sort_rows(const struct target *target, struct nps_ext_sort *sort)
{
	int err = 0;

	for (size_t i = 0; !err && i < target->table->len; i++)
		if (target->name[i] == NPS_NONE)
			err = kernel_add(
				sort, kernel_key(target->device[i], target->stream[i], target->task[i]), i);
	return err ? err : nps_ext_sort__finish(sort);
}

static int named_compare(const struct named *a, const struct named *b)
{
	if (a->key.high != b->key.high)
		return a->key.high < b->key.high ? -1 : 1;
	return (a->key.low > b->key.low) - (a->key.low < b->key.low);
}

/* The n-th row of an id gets the name of the id's n-th kernel; further rows that of its last kernel. */
static void target_join_kernels(const struct nps_model *m, const struct target *target,
				struct nps_ext_sort *kernels, struct nps_ext_sort *rows)
{
	const struct named *next = nps_ext_sort__next(kernels), *row;
	struct named kernel = { 0 };
	bool have = false;

	while ((row = nps_ext_sort__next(rows))) {
		while (next && named_compare(next, row) < 0) {
			next = nps_ext_sort__next(kernels);
			have = false;
		}
		if (next && !named_compare(next, row)) {
			kernel = *next;
			have = true;
			next = nps_ext_sort__next(kernels);
		} else if (have && named_compare(&kernel, row)) {
			have = false;
		}
		if (have)
			target->name[row->row] = m->compute.name[kernel.row];
	}
}

static int name_rows(struct nps_model *m, const struct target *target)
{
	struct nps_ext_sort kernels, rows;
	int err;

	if (!target->table->len || !m->compute.t.len)
		return 0;
	nps_ext_sort__init(&kernels, m->tmpfd, sizeof(struct named));
	nps_ext_sort__init(&rows, m->tmpfd, sizeof(struct named));
	err = kernels_sort(m, &kernels);
	err = err ? err : target_sort_rows(target, &rows);
	if (err)
		goto out;
	target_join_kernels(m, target, &kernels, &rows);
	err = kernels.err ? kernels.err : rows.err;
out:
	nps_ext_sort__free(&kernels);
	nps_ext_sort__free(&rows);
	return err;
}

int nps_derive__task_names(struct nps_model *m)
{
	struct nps_task_counter_table *counters[] = { &m->l2_cache, &m->soc_pmu, &m->page_fault };
	const struct target aicpu = { &m->aicpu.t, m->aicpu.device, m->aicpu.stream, m->aicpu.task,
				      m->aicpu.node };
	int err = name_rows(m, &aicpu);

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(counters); i++) {
		struct nps_task_counter_table *t = counters[i];

		err = name_rows(m, &(struct target){ &t->t, t->device, t->stream, t->task, t->name });
	}
	return err;
}
