/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of torch results (outputs 4.5). An enqueue and its dequeue share the queue's number; a
 * forward and its backward operator share a number of their own; an operator lists the connections of what
 * it launched.
 *
 * Who launched: the call was made while its thread ran what it had dequeued, so the operator is the
 * innermost one around the enqueue of that number. Without a queue it is the innermost one around the call
 * itself; if there is none, as where the queue was not recorded, it is the one around the first phase of what
 * the call launched. All of these come in order of time, so one walk finds them; it is done twice, to count
 * and to write.
 */
#include "base/index.h"
#include "derive/derive.h"
#include "derive/queue.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define OWN_IDS (5LL << 28) /* gen-B: connections that are not CANN's begin here */
#define FAR 256 /* collectives lie that far apart that each touches a page of its own */

/* The innermost operator of each thread at a time that only grows. */
struct stacks {
	const struct nps_torch_table *torch;
	size_t first, next; /* first operator, and the one that begins next */
	struct nps_map top; /* gtid -> innermost operator */
	struct nps_vec parent; /* uint32_t: around operator `first` + i */
};

struct links {
	struct nps_model *m;
	struct nps_queue queue;
	size_t ops; /* the first operator: all are from here on */
	int64_t base; /* of what is not CANN's */
	int64_t largest; /* correlation of the queue that can be a connection */
	uint64_t misfits; /* numbers that are no connection */
	struct nps_index enqueuer; /* correlation -> operator that enqueued */
	struct nps_index planner; /* connection of a launch -> operator that planned it */
	struct nps_index launches; /* connection -> 1: something ran on the device */
	struct nps_index forward, backward; /* sequence number -> operator */
	struct nps_index pair; /* sequence number -> number of the pair */
};

/* --- the innermost operator ----------------------------------------------------------------------- */

static void stacks_init(struct stacks *s, const struct links *l)
{
	*s = (struct stacks){ .torch = &l->m->torch, .first = l->ops, .next = l->ops };
	nps_vec__init(&s->parent, l->m->tmpfd, sizeof(uint32_t));
}

static void stacks_free(struct stacks *s)
{
	nps_map__free(&s->top);
	nps_vec__free(&s->parent);
}

/* From operator TOP outwards, the first that has not ended before TIME. */
static uint32_t op_still_open(const struct stacks *s, uint32_t top, uint64_t time)
{
	while (top != NPS_NONE && s->torch->end[top] < time)
		top = NPS_AT(&s->parent, uint32_t, top - s->first);
	return top;
}

/* Begins the operators that start at TIME or before. */
static int stacks_advance(struct stacks *s, uint64_t time)
{
	const struct nps_torch_table *torch = s->torch;
	int err = 0;

	for (; !err && s->next < torch->t.len && torch->start[s->next] <= time; s->next++) {
		uint32_t *parent = nps_vec__push(&s->parent);

		if (!parent)
			return -ENOMEM;
		*parent = NPS_NONE;
		if (torch->type[s->next] != NPS_API_TORCH_OP)
			continue;
		*parent =
			op_still_open(s, nps_map__get(&s->top, torch->gtid[s->next]), torch->start[s->next]);
		err = nps_map__put(&s->top, torch->gtid[s->next], s->next);
		if (!(s->parent.len % NPS_TABLE_HOT))
			nps_vec__cool(&s->parent);
	}
	return err;
}

/* Stores the innermost operator of thread GTID at TIME in *ROW, NPS_NONE if there is none. 0 or -ENOMEM. */
static int stacks_innermost(struct stacks *s, uint64_t gtid, uint64_t time, uint32_t *row)
{
	uint32_t top, found;
	int err = stacks_advance(s, time);

	if (err)
		return err;
	top = nps_map__get(&s->top, gtid);
	found = op_still_open(s, top, time);
	*row = found;
	return found == top ? 0 : nps_map__put(&s->top, gtid, found);
}

/* Releases memory of the indexes from time to time, as a pace does of the tables. */
static void links_step(const struct links *l, struct nps_pace *pace)
{
	nps_pace__step(pace);
	if (pace->steps & (NPS_TABLE_HOT - 1))
		return;
	nps_index__cool(&l->enqueuer);
	nps_index__cool(&l->planner);
	nps_index__cool(&l->launches);
	nps_index__cool(&l->forward);
	nps_index__cool(&l->backward);
	nps_index__cool(&l->pair);
}

/* --- what is there -------------------------------------------------------------------------------- */

static void find_ops(struct links *l)
{
	const struct nps_torch_table *torch = &l->m->torch;
	struct nps_pace pace = { l->m, 0 };
	size_t i = l->queue.end;

	for (; i < torch->t.len && torch->type[i] != NPS_API_TORCH_OP; i++)
		links_step(l, &pace);
	l->ops = i;
}

static int index_launches(struct links *l)
{
	const struct nps_task_table *task = &l->m->task;
	const struct nps_comm_op_table *op = &l->m->comm_op;
	struct nps_pace pace = { l->m, 0 };
	uint64_t low = NPS_NO_ID, high = 0;
	int err = 0;

	for (size_t i = 0; i < l->m->api.t.len; i++, links_step(l, &pace)) {
		if (l->m->api.connection[i] == NPS_NO_ID)
			continue;
		low = NPS_MIN(low, (uint64_t)l->m->api.connection[i]);
		high = NPS_MAX(high, (uint64_t)l->m->api.connection[i]);
	}
	nps_index__init(&l->launches, l->m->tmpfd, low, high, l->m->api.t.len);
	for (size_t i = 0; !err && i < task->t.len; i++, links_step(l, &pace))
		if ((task->class[i] == NPS_CLASS_COMPUTE || task->class[i] == NPS_CLASS_MEMCPY) &&
		    task->connection[i] >= low && task->connection[i] <= high)
			err = nps_index__put(&l->launches, task->connection[i], 1);
	for (size_t i = 0; !err && i < op->t.len; i++, links_step(l, &pace)) {
		if (!(i % FAR))
			nps_index__cool(&l->launches);
		if (op->connection[i] >= low && op->connection[i] <= high)
			err = nps_index__put(&l->launches, op->connection[i], 1);
	}
	return err;
}

static int links_index_enqueues(struct links *l)
{
	const struct nps_torch_table *torch = &l->m->torch;
	struct nps_pace pace = { l->m, 0 };
	int64_t low = INT64_MAX, high = -1;
	struct stacks stacks;
	int err = 0;

	for (size_t i = 0; i < l->queue.end; i++, links_step(l, &pace)) {
		if (torch->correlation[i] < 0)
			continue;
		low = NPS_MIN(low, torch->correlation[i]);
		high = NPS_MAX(high, torch->correlation[i]);
		/* What can be no connection must not push the pairs' numbers out of reach. */
		if (torch->correlation[i] < (int64_t)NPS_NO_ID - l->base)
			l->largest = NPS_MAX(l->largest, torch->correlation[i]);
	}
	nps_index__init(&l->enqueuer, l->m->tmpfd, low, high, l->queue.dequeues);
	stacks_init(&stacks, l);
	for (size_t i = 0; !err && i < l->queue.dequeues; i++, links_step(l, &pace)) {
		uint32_t op;

		if (torch->correlation[i] < 0)
			continue;
		err = stacks_innermost(&stacks, torch->gtid[i], torch->start[i], &op);
		if (err || op == NPS_NONE)
			continue;
		err = nps_index__put(&l->enqueuer, torch->correlation[i], op);
	}
	stacks_free(&stacks);
	return err;
}

static int links_index_planned(struct links *l)
{
	const struct nps_planned_table *planned = &l->m->planned;
	struct nps_pace pace = { l->m, 0 };
	uint32_t low = NPS_NONE, high = 0, op;
	struct stacks stacks;
	int err = 0;

	for (size_t i = 0; i < planned->t.len; i++, links_step(l, &pace)) {
		low = NPS_MIN(low, planned->connection[i]);
		high = NPS_MAX(high, planned->connection[i]);
	}
	nps_index__init(&l->planner, l->m->tmpfd, planned->t.len ? low : 0, high, planned->t.len);
	stacks_init(&stacks, l);
	for (size_t i = 0; !err && i < planned->t.len; i++, links_step(l, &pace)) {
		err = stacks_innermost(&stacks, planned->gtid[i], planned->time[i], &op);
		if (!err && op != NPS_NONE)
			err = nps_index__put(&l->planner, planned->connection[i], op);
	}
	stacks_free(&stacks);
	return err;
}

/* Of several operators with a number the one that ends last: those that it called have it too. */
static int put_last(struct nps_index *index, const struct nps_torch_table *torch, size_t row)
{
	uint32_t before = nps_index__get(index, torch->sequence[row]);

	if (before != NPS_NONE && torch->end[before] >= torch->end[row])
		return 0;
	return nps_index__put(index, torch->sequence[row], row);
}

static int index_sequences(struct links *l)
{
	const struct nps_torch_table *torch = &l->m->torch;
	struct nps_pace pace = { l->m, 0 };
	int64_t low = INT64_MAX, high = -1;
	size_t count = torch->t.len - l->ops;
	int err = 0;

#define NUMBERED(i) (torch->type[i] == NPS_API_TORCH_OP && torch->sequence[i] >= 0)
	for (size_t i = l->ops; i < torch->t.len; i++, links_step(l, &pace)) {
		if (!NUMBERED(i))
			continue;
		low = NPS_MIN(low, torch->sequence[i]);
		high = NPS_MAX(high, torch->sequence[i]);
	}
	if (high < 0)
		low = high = 0;
	nps_index__init(&l->forward, l->m->tmpfd, low, high, count);
	nps_index__init(&l->backward, l->m->tmpfd, low, high, count);
	nps_index__init(&l->pair, l->m->tmpfd, low, high, count);
	for (size_t i = l->ops; !err && i < torch->t.len; i++, links_step(l, &pace))
		if (NUMBERED(i))
			err = put_last(torch->forward_tid[i] > 0 ? &l->backward : &l->forward, torch, i);
#undef NUMBERED
	return err;
}

/* Pairs of one thread are no flow. */
static int number_pairs(struct links *l)
{
	const struct nps_torch_table *torch = &l->m->torch;
	struct nps_pace pace = { l->m, 0 };
	uint32_t pairs = 0;
	int err = 0;

	for (size_t i = l->ops; !err && i < torch->t.len; i++, links_step(l, &pace)) {
		uint32_t to;

		if (torch->type[i] != NPS_API_TORCH_OP || torch->sequence[i] < 0 ||
		    nps_index__get(&l->forward, torch->sequence[i]) != i)
			continue;
		to = nps_index__get(&l->backward, torch->sequence[i]);
		if (to != NPS_NONE && torch->gtid[to] != torch->gtid[i])
			err = nps_index__put(&l->pair, torch->sequence[i], pairs++);
	}
	return err;
}

/* --- link rows ------------------------------------------------------------------------------------ */

/* The connection of number VALUE that is not CANN's in *ID; false if it cannot be one. */
static bool own_id(struct links *l, int64_t value, uint32_t *id)
{
	if (value < 0 || value >= (int64_t)NPS_NO_ID - l->base) {
		l->misfits++;
		return false;
	}
	*id = l->base + value;
	return true;
}

/* Whether ROW is one end of a forward-backward pair, and the connection of the pair. */
static bool pair_id(struct links *l, size_t row, uint32_t *id)
{
	int64_t sequence = l->m->torch.sequence[row];
	uint32_t pair;

	if (sequence < 0)
		return false;
	pair = nps_index__get(&l->pair, sequence);
	if (pair == NPS_NONE ||
	    (nps_index__get(&l->forward, sequence) != row && nps_index__get(&l->backward, sequence) != row))
		return false;
	return own_id(l, l->largest + 1 + pair, id);
}

/* The operator that made call I, NPS_NONE if there is none. Calls in order of time. */
static int call_caller(struct links *l, struct stacks *stacks, size_t i, uint32_t *op)
{
	const struct nps_api_table *api = &l->m->api;
	uint32_t at;
	int err = nps_queue__at(&l->queue, api->gtid[i], api->start[i], &at);

	*op = NPS_NONE;
	if (err)
		return err;
	if (at == NPS_NONE) {
		err = stacks_innermost(stacks, api->gtid[i], api->start[i], op);
		if (!err && *op == NPS_NONE)
			*op = nps_index__get(&l->planner, api->connection[i]);
		return err;
	}
	*op = nps_index__get(&l->enqueuer, l->m->torch.correlation[at]);
	return 0;
}

/*
 * Visits what operators launched. Counts in their `connection`, or (WRITE) appends to the link rows
 * at which their `connection` points.
 */
static int visit_launches(struct links *l, bool write)
{
	const struct nps_torch_table *torch = &l->m->torch;
	const struct nps_api_table *api = &l->m->api;
	struct nps_pace pace = { l->m, 0 };
	struct stacks stacks;
	int err = 0;

	stacks_init(&stacks, l);
	nps_queue__restart(&l->queue);
	for (size_t i = 0; !err && i < api->t.len; i++, links_step(l, &pace)) {
		uint32_t row;

		if (nps_index__get(&l->launches, api->connection[i]) == NPS_NONE)
			continue;
		err = call_caller(l, &stacks, i, &row);
		if (err || row == NPS_NONE)
			continue;
		if (write)
			l->m->link.connection[torch->connection[row]] = api->connection[i];
		torch->connection[row]++;
	}
	stacks_free(&stacks);
	return err;
}

/* Queue rows have one link each; *ID is the next free id. */
static int link_queue(struct links *l, uint32_t *id)
{
	struct nps_torch_table *torch = &l->m->torch;
	struct nps_pace pace = { l->m, 0 };
	int err = 0;

	for (size_t i = 0; !err && i < l->queue.end; i++, links_step(l, &pace)) {
		uint32_t own;
		size_t row;

		torch->connection[i] = NPS_NULL;
		if (torch->correlation[i] < 0 || !own_id(l, torch->correlation[i], &own))
			continue;
		err = nps_table__add(&l->m->link.t, &row);
		if (err)
			break;
		l->m->link.id[row] = *id;
		l->m->link.connection[row] = own;
		torch->connection[i] = (*id)++;
	}
	return err;
}

/* Turns counts into the rows where the links of an operator begin. */
static int links_reserve(struct links *l)
{
	struct nps_torch_table *torch = &l->m->torch;
	struct nps_pace pace = { l->m, 0 };
	size_t end = l->m->link.t.len;
	uint64_t misfits = l->misfits;
	uint32_t own;
	int err;

	for (size_t i = l->ops; i < torch->t.len; i++, links_step(l, &pace))
		end += torch->connection[i] + pair_id(l, i, &own);
	l->misfits = misfits; /* they are counted when they are written */
	err = nps_table__reserve(&l->m->link.t, end);
	if (err)
		return err;
	for (size_t i = l->ops; i < torch->t.len; i++, links_step(l, &pace)) {
		int64_t count = torch->connection[i];
		size_t row = l->m->link.t.len;

		if (pair_id(l, i, &own))
			l->m->link.connection[row++] = own;
		torch->connection[i] = row;
		l->m->link.t.len = row + count;
	}
	return 0;
}

/* After the links were written an operator's `connection` is where they end. */
static void number_ops(struct links *l, size_t from, uint32_t id)
{
	struct nps_torch_table *torch = &l->m->torch;
	struct nps_pace pace = { l->m, 0 };

	for (size_t i = l->ops; i < torch->t.len; i++, links_step(l, &pace)) {
		size_t to = torch->connection[i];

		torch->connection[i] = from < to ? (int64_t)id : NPS_NULL;
		id += from < to;
		for (; from < to; from++)
			l->m->link.id[from] = id - 1;
	}
}

static int link_ops(struct links *l, uint32_t id)
{
	struct nps_torch_table *torch = &l->m->torch;
	struct nps_pace pace = { l->m, 0 };
	size_t from = l->m->link.t.len;
	int err;

	for (size_t i = l->queue.end; i < torch->t.len; i++, links_step(l, &pace))
		torch->connection[i] = i < l->ops ? NPS_NULL : 0;
	err = visit_launches(l, false);
	if (err)
		return err;
	err = links_reserve(l);
	if (err)
		return err;
	err = visit_launches(l, true);
	if (err)
		return err;
	number_ops(l, from, id);
	return 0;
}

static void links_init(struct links *l, struct nps_model *m)
{
	*l = (struct links){ .m = m, .largest = -1 };
	l->base = m->generation == NPS_GENERATION_B ? OWN_IDS : 0;
	nps_index__init(&l->enqueuer, m->tmpfd, 0, 0, 0);
	nps_index__init(&l->planner, m->tmpfd, 0, 0, 0);
	nps_index__init(&l->launches, m->tmpfd, 0, 0, 0);
	nps_index__init(&l->forward, m->tmpfd, 0, 0, 0);
	nps_index__init(&l->backward, m->tmpfd, 0, 0, 0);
	nps_index__init(&l->pair, m->tmpfd, 0, 0, 0);
	nps_queue__init(&l->queue, m);
	find_ops(l);
}

static void links_free(struct links *l)
{
	nps_queue__free(&l->queue);
	nps_index__free(&l->enqueuer);
	nps_index__free(&l->planner);
	nps_index__free(&l->launches);
	nps_index__free(&l->forward);
	nps_index__free(&l->backward);
	nps_index__free(&l->pair);
}

static int index_all(struct links *l)
{
	static int (*const parts[])(struct links *) = { index_launches, links_index_enqueues,
							links_index_planned, index_sequences, number_pairs };
	int err = 0;

	for (size_t i = 0; !err && i < NPS_ARRAY_SIZE(parts); i++)
		err = parts[i](l);
	return err;
}

int nps_derive__links(struct nps_model *m)
{
	struct links l;
	uint32_t id = 0;
	int err;

	if (!m->torch.t.len || m->link.t.len)
		return 0;
	links_init(&l, m);
	err = index_all(&l);
	err = err ? err : link_queue(&l, &id);
	err = err ? err : link_ops(&l, id);
	nps_model__lost(m, l.misfits, "numbers of the task queue or of operators that are no connection");
	links_free(&l);
	return err;
}

/* --- copies that no operator lists ---------------------------------------------------------------- */

enum { UNLISTED = 1, LISTED };

/* Databases without MEMCPY_INFO mark copies by their type alone. *KNOWN: a text that is that type. */
static bool task_is_copy(const struct links *l, size_t i, uint32_t *known)
{
	const struct nps_task_table *task = &l->m->task;

	if (task->connection[i] == NPS_NO_ID)
		return false;
	if (task->class[i] == NPS_CLASS_MEMCPY ||
	    (task->class[i] == NPS_CLASS_OTHER && task->type[i] == *known))
		return true;
	if (task->class[i] != NPS_CLASS_OTHER ||
	    strcmp(nps_model__text(l->m, task->type[i]), "MEMCPY_ASYNC") != 0)
		return false;
	*known = task->type[i];
	return true;
}

static int index_copies(struct links *l)
{
	const struct nps_task_table *task = &l->m->task;
	const struct nps_link_table *link = &l->m->link;
	struct nps_pace pace = { l->m, 0 };
	uint64_t low = NPS_NO_ID, high = 0, n = 0;
	uint32_t known = NPS_NONE;
	int err = 0;

	for (size_t i = 0; i < task->t.len; i++, links_step(l, &pace)) {
		if (!task_is_copy(l, i, &known))
			continue;
		low = NPS_MIN(low, (uint64_t)task->connection[i]);
		high = NPS_MAX(high, (uint64_t)task->connection[i]);
		n++;
	}
	nps_index__init(&l->launches, l->m->tmpfd, low, high, n);
	for (size_t i = 0; !err && n && i < task->t.len; i++, links_step(l, &pace))
		if (task_is_copy(l, i, &known))
			err = nps_index__put(&l->launches, task->connection[i], UNLISTED);
	for (size_t i = 0; !err && n && i < link->t.len; i++, links_step(l, &pace))
		if (nps_index__get(&l->launches, link->connection[i]) != NPS_NONE)
			err = nps_index__put(&l->launches, link->connection[i], LISTED);
	return err;
}

int nps_derive__visit_unlisted_copies(const struct nps_model *m, void *ctx,
				      int (*fn)(void *ctx, uint32_t op, uint32_t connection))
{
	const struct nps_api_table *api = &m->api;
	struct nps_pace pace = { m, 0 };
	struct stacks stacks;
	struct links l;
	int err;

	if (!m->torch.t.len)
		return 0;
	links_init(&l, (struct nps_model *)m); /* nothing of it is changed here */
	stacks_init(&stacks, &l);
	err = index_copies(&l);
	err = err ? err : links_index_enqueues(&l);
	err = err ? err : links_index_planned(&l);
	for (size_t i = 0; !err && i < api->t.len; i++, links_step(&l, &pace)) {
		uint32_t op = NPS_NONE;

		if (nps_index__get(&l.launches, api->connection[i]) != UNLISTED)
			continue;
		err = call_caller(&l, &stacks, i, &op);
		if (err || op == NPS_NONE)
			continue;
		err = fn(ctx, op, api->connection[i]);
	}
	stacks_free(&stacks);
	links_free(&l);
	return err;
}
