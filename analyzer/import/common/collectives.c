/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/common/collectives.h"

#include "base/ext_sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A row, to be sorted by a time. */
struct row_key {
	struct nps_sort_key key; /* high: time, low: row */
};

static struct nps_collective *collective_at(const struct nps_vec *rows, size_t i)
{
	return (struct nps_collective *)((char *)rows->data + i * rows->elem);
}

#define HOT 8192U /* rows that stay resident while they are read: some MB beside a chunk of the sort */

/* Nearly all rows are read in order: those that were read may leave the resident set. */
static void collective_read(const struct nps_vec *rows, uint32_t *steps)
{
	if (!(++*steps & (HOT - 1)))
		nps_vec__cool(rows);
}

void nps_collective__add_time(struct nps_collective *c, uint64_t start, uint64_t end, bool measured,
			      bool master)
{
	bool first = measured && (!c->measured || (master && !c->master));

	if (measured)
		c->measured++;
	if (c->master && !master)
		return;
	c->master |= master;
	if (first) {
		c->start = start;
		c->end = end;
	} else if (measured) {
		c->start = NPS_MIN(c->start, start);
		c->end = NPS_MAX(c->end, end);
	} else if (!c->start || (!c->measured && start < c->start)) {
		c->start = c->end = start;
	}
}

/* The group appears as the last three digits of its name's hash. */
static uint32_t collective_run_name(const struct nps_collective *c, struct nps_strings *strings)
{
	char hash[24];
	int len = snprintf(hash, sizeof(hash), "%" PRIu64, c->hash);

	return nps_strings__addf(strings, "%.511s_%s_%u_%u",
				 c->type == NPS_NONE ? "N/A" : nps_strings__get(strings, c->type),
				 hash + (len > 3 ? len - 3 : 0), c->index, c->run + 1);
}

int nps_collectives__number(struct nps_vec *calls, struct nps_strings *strings)
{
	struct nps_map counts = { 0 };
	const struct row_key *next;
	struct nps_ext_sort order;
	uint32_t steps = 0;
	int err = 0;

	nps_ext_sort__init(&order, calls->dirfd, sizeof(*next));
	for (size_t i = 0; i < calls->len; i++) {
		struct row_key *to = nps_ext_sort__add(&order);

		if (!to)
			break;
		to->key = (struct nps_sort_key){ collective_at(calls, i)->begin, i };
		collective_read(calls, &steps);
	}
	if (!order.err)
		nps_ext_sort__finish(&order);
	while (!order.err && !err && (next = nps_ext_sort__next(&order))) {
		struct nps_collective *call = collective_at(calls, next->key.low);
		uint32_t count = nps_map__get(&counts, call->numbered_with);

		call->index = count == NPS_NONE ? 0 : count;
		err = nps_map__put(&counts, call->numbered_with, call->index + 1);
		if (strings) {
			call->name = collective_run_name(call, strings);
			err = call->name == NPS_NONE ? -ENOMEM : err;
		}
		collective_read(calls, &steps);
	}
	err = err ? err : order.err;
	nps_ext_sort__free(&order);
	nps_map__free(&counts);
	return err;
}

static int sort_runs(const struct nps_vec *runs, struct nps_ext_sort *order, uint64_t *unseen)
{
	uint32_t steps = 0;

	for (size_t i = 0; i < runs->len; i++) {
		uint64_t start = collective_at(runs, i)->start;
		struct row_key *to;

		collective_read(runs, &steps);
		if (!start) {
			++*unseen;
			continue;
		}
		to = nps_ext_sort__add(order);
		if (!to)
			return order->err;
		to->key = (struct nps_sort_key){ start, i };
	}
	return nps_ext_sort__finish(order);
}

static int add_run(struct nps_model *m, struct nps_collective *c, uint64_t shift)
{
	if (c->name == NPS_NONE)
		c->name = collective_run_name(c, m->strings);
	if (c->name == NPS_NONE)
		return -ENOMEM;
	return nps_comm_op_table__add(
		&m->comm_op,
		&(struct nps_comm_op_row){ .name = c->name,
					   .start = c->start + shift,
					   .end = c->end + shift,
					   .connection = c->connection,
					   .group = c->group,
					   .id = m->comm_op.t.len + 1,
					   .relay = c->relay < 2 ? c->relay : NPS_NULL,
					   .retry = c->retry < 2 ? c->retry : NPS_NULL,
					   .dtype = c->dtype,
					   .algorithm = c->algorithm,
					   .count = c->count > INT64_MAX ? NPS_NULL : (int64_t)c->count,
					   .type = c->type,
					   .device = c->device,
					   .ranks = c->ranks ? (int64_t)c->ranks : NPS_NULL,
					   .model = c->model,
					   .tasks = c->tasks,
					   .measured = c->measured,
					   .step = c->step });
}

/* Tasks of a run without a row have the id 0. */
static void name_tasks(struct nps_model *m, const struct nps_vec *runs, const uint32_t *ids)
{
	struct nps_comm_task_table *t = &m->comm_task;
	struct nps_pace pace = { m, 0 };
	uint32_t steps = 0;

	for (size_t i = 0; i < t->t.len; i++) {
		const struct nps_collective *c = collective_at(runs, t->op[i]);

		t->name[i] = c->name;
		t->group[i] = c->group;
		t->op[i] = ids[t->op[i]];
		nps_pace__step(&pace);
		collective_read(runs, &steps);
	}
}

int nps_collectives__fill(struct nps_model *model, struct nps_vec *runs, uint64_t shift, uint64_t *unseen)
{
	const struct row_key *next;
	struct nps_ext_sort order;
	struct nps_vec ids;
	uint32_t steps = 0;
	int err;

	*unseen = 0;
	nps_ext_sort__init(&order, model->tmpfd, sizeof(*next));
	nps_vec__init(&ids, model->tmpfd, sizeof(uint32_t));
	err = nps_vec__resize(&ids, runs->len);
	if (err)
		goto out;
	err = sort_runs(runs, &order, unseen);
	while (!err && (next = nps_ext_sort__next(&order))) {
		err = add_run(model, collective_at(runs, next->key.low), shift);
		NPS_AT(&ids, uint32_t, next->key.low) = model->comm_op.t.len;
		collective_read(runs, &steps);
	}
	err = err ? err : order.err;
	if (err)
		goto out;
	name_tasks(model, runs, ids.data);
out:
	nps_ext_sort__free(&order);
	nps_vec__free(&ids);
	return err;
}
