/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CommAnalyzer tables: tasks of collectives come by start and go to the collectives that are under way. A
 * collective is computed when everything after it begins later than it ended, so that only tasks of
 * overlapping collectives are in memory.
 */
#include "derive/comm.h"
#include "derive/derive.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define SDMA 0 /* ENUM_HCCL_TRANSPORT_TYPE */
#define NOT_AVAILABLE 65534 /* every enum of the vendor */
#define PAYLOAD 1 /* ENUM_HCCL_RDMA_TYPE: RDMA_SEND_PAYLOAD */
#define SLACK 100000 /* ns by which a collective's times and its tasks' may disagree */
#define MOST_SLACK 1000000000 /* where planes other than the master's begin earlier or go on longer */
#define STALE 4 /* the map of collectives under way is made anew when it is this much too large */
#define FEW 4096

struct under_way {
	uint32_t row; /* of comm_op */
	uint32_t first, last; /* parts */
	bool details; /* a task has details */
};

struct comm_walk {
	struct nps_model *m;
	struct nps_comm_texts texts;
	struct nps_comm_stats stats;
	struct nps_matrix matrix;
	struct nps_vec ops; /* struct under_way by start, from `head` on */
	size_t head;
	uint64_t base; /* number of the collective in ops[0] */
	struct nps_map number_of; /* op id -> number */
	struct nps_vec parts; /* struct nps_part */
	uint32_t unused; /* chain of free parts */
	size_t next; /* collective that begins next */
	uint64_t lead,
		lag; /* ns by which tasks may begin before their collective begins, and after it has ended */
	uint32_t memcpy, reduce, wait; /* texts: types of tasks */
	uint32_t collective, peer, step; /* texts; step: "step", there are none */
};

static int text_add(struct nps_model *m, uint32_t *text, const char *value)
{
	*text = nps_strings__addz(m->strings, value);
	return *text == NPS_NONE ? -ENOMEM : 0;
}

static int add_texts(struct comm_walk *w)
{
	struct nps_comm_texts *t = &w->texts;
	const struct {
		uint32_t *text;
		const char *value;
	} texts[] = { { &t->transport[NPS_TRANSPORT_RDMA], "RDMA" },
		      { &t->transport[NPS_TRANSPORT_HCCS], "HCCS" },
		      { &t->transport[NPS_TRANSPORT_PCIE], "PCIE" },
		      { &t->transport[NPS_TRANSPORT_SDMA], "SDMA" },
		      { &t->transport[NPS_TRANSPORT_SIO], "SIO" },
		      { &t->local, "LOCAL" },
		      { &t->roce, "ROCE" },
		      { &t->standard_roce, "STANDARD_ROCE" },
		      { &t->reserved, "RESERVED" },
		      { &t->ub, w->m->generation == NPS_GENERATION_A ? "RESERVED" : "UB" },
		      { &t->uboe, "UBoE" },
		      { &t->invalid, "INVALID_TYPE" },
		      { &t->none, "" },
		      { &w->memcpy, "Memcpy" },
		      { &w->reduce, "Reduce_Inline" },
		      { &w->wait, "Notify_Wait" },
		      { &w->collective, "collective" },
		      { &w->peer, "p2p" },
		      { &w->step, "step" } };
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(texts); i++)
		err = text_add(w->m, texts[i].text, texts[i].value);
	return err;
}

/* The vendor's hash of a group's name (outputs 0.3). A name of digits alone is that hash already. */
static uint32_t group_hash(struct nps_model *m, uint32_t group)
{
	const char *name = nps_model__text(m, group);
	uint32_t high = 0, low = 0;

	if (*name && strspn(name, "0123456789") == strlen(name))
		return group;
	for (const char *c = name; *c; c++) {
		high = high * 29 + (unsigned char)*c;
		low = low * 131 + (unsigned char)*c;
	}
	return nps_strings__addf(m->strings, "%llu", (unsigned long long)high << 32 | low);
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncasecmp(text, prefix, strlen(prefix));
}

/* The text of the step of collective ROW: with one step, that one. 0; -ENOENT: in no step; or -ENOMEM. */
static int collective_step(struct comm_walk *w, uint32_t row, uint32_t *text)
{
	const struct nps_step_table *steps = &w->m->step;
	uint32_t step = steps->t.len == 1 ? 0 : w->m->comm_op.step[row];

	*text = w->step;
	if (!steps->t.len)
		return 0;
	if (step >= steps->t.len)
		return -ENOENT;
	*text = nps_strings__addf(w->m->strings, "step%lld", (long long)steps->id[step]);
	return *text == NPS_NONE ? -ENOMEM : 0;
}

/* -ENOENT: the collective is left out. */
static int count_op(struct comm_walk *w, const struct under_way *op)
{
	const char *name = nps_model__text(w->m, w->m->comm_op.name[op->row]);
	struct nps_whole_op whole = { .row = op->row, .first = op->first };
	bool peer = starts_with(name, "hcom_send") || starts_with(name, "hcom_receive") ||
		    starts_with(name, "hcom_batchsendrecv");
	int err;

	if (!op->details || starts_with(name, "total"))
		return -ENOENT;
	whole.peer = strcasestr(name, "send") || strcasestr(name, "receive");
	whole.type = peer ? w->peer : w->collective;
	err = collective_step(w, op->row, &whole.step); /* adds a text: the name may have moved */
	if (err)
		return err;
	whole.group = group_hash(w->m, w->m->comm_op.group[op->row]);
	return whole.group == NPS_NONE ? -ENOMEM : nps_comm_stats__op(&w->stats, &whole, w->parts.data);
}

static int finish_op(struct comm_walk *w, const struct under_way *op)
{
	int err = count_op(w, op);

	if (op->first != NPS_NONE) {
		NPS_AT(&w->parts, struct nps_part, op->last).next = w->unused;
		w->unused = op->first;
	}
	return err == -ENOENT ? 0 : err;
}

/* Works out the collectives that ended before TIME (UINT64_MAX: all), in order of their start. */
static int finish_before(struct comm_walk *w, uint64_t time)
{
	int err = 0;

	while (!err && w->head < w->ops.len) {
		const struct under_way *op = &NPS_AT(&w->ops, struct under_way, w->head);

		if (time != UINT64_MAX && nps_add_sat(w->m->comm_op.end[op->row], w->lag) >= time)
			break;
		err = finish_op(w, op);
		w->head++;
	}
	if (w->head && (w->head == w->ops.len || w->head > NPS_MAX(w->ops.len / 2, (size_t)FEW))) {
		memmove(w->ops.data, (struct under_way *)w->ops.data + w->head,
			(w->ops.len - w->head) * sizeof(struct under_way));
		w->ops.len -= w->head;
		w->base += w->head;
		w->head = 0;
	}
	return err;
}

static int collective_remember(struct comm_walk *w, size_t i)
{
	uint32_t row = NPS_AT(&w->ops, struct under_way, i).row;

	return nps_map__put(&w->number_of, w->m->comm_op.id[row], w->base + i);
}

/* Forgets collectives that are done. */
static int collective_forget(struct comm_walk *w)
{
	int err = 0;

	if (w->number_of.len < FEW || w->number_of.len / STALE < w->ops.len - w->head)
		return 0;
	nps_map__clear(&w->number_of);
	for (size_t i = w->head; !err && i < w->ops.len; i++)
		err = collective_remember(w, i);
	return err;
}

/* Collectives that begin at TIME or before are under way. */
static int begin_until(struct comm_walk *w, uint64_t time)
{
	const struct nps_comm_op_table *table = &w->m->comm_op;
	int err = 0;

	for (; !err && w->next < table->t.len && table->start[w->next] <= nps_add_sat(time, w->lead);
	     w->next++) {
		struct under_way *op = nps_vec__push(&w->ops);

		if (!op)
			return -ENOMEM;
		*op = (struct under_way){ .row = w->next, .first = NPS_NONE, .last = NPS_NONE };
		err = collective_remember(w, w->ops.len - 1);
		err = err ? err : collective_forget(w);
	}
	return err;
}

static struct under_way *collective_find(struct comm_walk *w, uint32_t id)
{
	uint32_t number = nps_map__get(&w->number_of, id);
	struct under_way *op;

	if (number == NPS_NONE || number < w->base + w->head || number >= w->base + w->ops.len)
		return NULL;
	op = &NPS_AT(&w->ops, struct under_way, number - w->base);
	return w->m->comm_op.id[op->row] == id ? op : NULL;
}

static int new_part(struct comm_walk *w, uint32_t *at)
{
	*at = w->unused;
	if (*at != NPS_NONE) {
		w->unused = NPS_AT(&w->parts, struct nps_part, *at).next;
		return 0;
	}
	if (w->parts.len >= NPS_NONE || !nps_vec__push(&w->parts))
		return -ENOMEM;
	*at = w->parts.len - 1;
	return 0;
}

static uint8_t task_comm_kind(const struct comm_walk *w, size_t row)
{
	const struct nps_comm_task_table *task = &w->m->comm_task;

	if (task->rdma_type[row] == PAYLOAD)
		return NPS_PART_PAYLOAD;
	if (task->type[row] == w->wait)
		return NPS_PART_WAIT;
	if (task->transport[row] == SDMA && (task->type[row] == w->memcpy || task->type[row] == w->reduce))
		return NPS_PART_COPY;
	return NPS_PART_OTHER;
}

static int collective_add_part(struct comm_walk *w, size_t row, uint64_t start, uint64_t end)
{
	const struct nps_comm_task_table *task = &w->m->comm_task;
	struct under_way *op = collective_find(w, task->op[row]);
	struct nps_part *part;
	int64_t size;
	uint32_t at;
	int err;

	if (!op)
		return 0;
	err = new_part(w, &at);
	if (err)
		return err;
	part = &NPS_AT(&w->parts, struct nps_part, at);
	size = NPS_MIN(NPS_MAX(task->size[row], (int64_t)0), INT64_MAX / NPS_TRANSPORTS);
	*part = (struct nps_part){ .start = start,
				   .end = end > start ? end : start,
				   .size = size,
				   .plane = task->plane[row],
				   .src = task->src[row],
				   .dst = task->dst[row],
				   .link = task->link[row] == NPS_NONE ? NOT_AVAILABLE : task->link[row],
				   .next = NPS_NONE,
				   .kind = task_comm_kind(w, row),
				   .master = task->master[row] };
	if (op->first == NPS_NONE)
		op->first = at;
	else
		NPS_AT(&w->parts, struct nps_part, op->last).next = at;
	op->last = at;
	op->details |= task->transport[row] != NOT_AVAILABLE;
	return 0;
}

/* Ids of most captures are those of the rows; ROW_OF has the rows of others. */
static int find_rows(const struct nps_comm_op_table *ops, struct nps_map *row_of)
{
	int err = 0;

	for (size_t i = 0; !err && i < ops->t.len; i++)
		if (ops->id[i] != i + 1)
			err = nps_map__put(row_of, ops->id[i], i);
	return err;
}

/* How far tasks reach beyond their collectives, whose times are those of the master plane. */
static int find_slack(struct comm_walk *w)
{
	const struct nps_comm_op_table *ops = &w->m->comm_op;
	const struct nps_comm_task_table *task = &w->m->comm_task;
	struct nps_pace pace = { w->m, 0 };
	struct nps_map row_of = { 0 };
	int err = find_rows(ops, &row_of);

	w->lead = w->lag = SLACK;
	for (size_t i = 0; !err && i < task->t.len; i++, nps_pace__step(&pace)) {
		uint32_t row = nps_map__get(&row_of, task->op[i]);
		uint64_t start;

		row = row == NPS_NONE ? task->op[i] - 1 : row;
		if (row >= ops->t.len || ops->id[row] != task->op[i] || task->task[i] >= w->m->task.t.len)
			continue;
		start = w->m->task.start[task->task[i]];
		if (start < ops->start[row])
			w->lead = NPS_MAX(w->lead, ops->start[row] - start);
		else if (start > ops->end[row])
			w->lag = NPS_MAX(w->lag, start - ops->end[row]);
	}
	w->lead = NPS_MIN(w->lead, (uint64_t)MOST_SLACK);
	w->lag = NPS_MIN(w->lag, (uint64_t)MOST_SLACK);
	nps_map__free(&row_of);
	return err;
}

static int collectives_walk(struct comm_walk *w)
{
	const struct nps_comm_task_table *task = &w->m->comm_task;
	struct nps_pace pace = { w->m, 0 };
	int err = 0;

	for (size_t i = 0; !err && i < task->t.len; i++, nps_pace__step(&pace)) {
		uint64_t start;

		if (task->task[i] >= w->m->task.t.len)
			continue;
		start = w->m->task.start[task->task[i]];
		err = begin_until(w, start);
		if (err)
			break;
		err = finish_before(w, start);
		if (err)
			break;
		err = collective_add_part(w, i, start, w->m->task.end[task->task[i]]);
	}
	err = err ? err : finish_before(w, UINT64_MAX);
	return err ? err : nps_matrix__finish(&w->matrix);
}

static bool any_details(const struct nps_model *m)
{
	struct nps_pace pace = { m, 0 };

	for (size_t i = 0; i < m->comm_task.t.len; i++, nps_pace__step(&pace))
		if (m->comm_task.transport[i] != NOT_AVAILABLE)
			return true;
	return false;
}

int nps_derive__comm(struct nps_model *m)
{
	struct comm_walk w = { .m = m, .unused = NPS_NONE };
	int err;

	if (m->comm_analyzed || !any_details(m))
		return 0;
	nps_vec__init(&w.ops, m->tmpfd, sizeof(struct under_way));
	nps_vec__init(&w.parts, m->tmpfd, sizeof(struct nps_part));
	nps_matrix__init(&w.matrix, m, &w.texts);
	nps_comm_stats__init(&w.stats, m, &w.texts, &w.matrix);
	err = add_texts(&w);
	err = err ? err : find_slack(&w);
	err = err ? err : collectives_walk(&w);
	nps_comm_stats__free(&w.stats);
	nps_matrix__free(&w.matrix);
	nps_vec__free(&w.ops);
	nps_vec__free(&w.parts);
	nps_map__free(&w.number_of);
	return err;
}
