/* SPDX-License-Identifier: BSD-2-Clause */
#include "cann/collectives.h"

#include "import/common/group_hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define NOT_TOLD 65534
#define INVALID 65535

/* A run of a call after its first. */
struct repeat {
	uint32_t call, run;
	struct nps_comm_span span;
	uint32_t seen;
};

/* What one stream has run of a call. */
struct lane {
	uint64_t start; /* of the latest task */
	uint32_t launch; /* row of the latest launch */
	uint32_t run;
};

/* A run of a call, to be sorted by its start. */
struct instance {
	struct nps_sort_key key; /* high: start; low: number, calls before repeats */
};

static struct nps_collective *call_at(const struct nps_collectives *c, size_t i)
{
	return &NPS_AT(&c->capture->collectives, struct nps_collective, i);
}

static struct repeat *repeat_at(const struct nps_collectives *c, size_t i)
{
	return &NPS_AT(&c->repeats, struct repeat, i);
}

/* Counts a row; nearly all come in order of time, so at times the rows before it are released from memory. */
static void step(struct nps_collectives *c)
{
	if (++c->steps & (NPS_TABLE_HOT - 1))
		return;
	nps_vec__cool(&c->capture->collectives);
	nps_vec__cool(&c->capture->parts);
	nps_vec__cool(&c->repeats);
	nps_vec__cool(&c->lanes);
	nps_vec__cool(&c->names);
	nps_vec__cool(&c->ids);
}

/* Numbers calls within their groups, in the order in which they began on the host. */
static int number_calls(struct nps_collectives *c)
{
	struct nps_ext_sort order;
	struct nps_map counts = { 0 };
	const struct instance *next;
	int err = 0;

	nps_ext_sort__init(&order, c->capture->model->tmpfd, sizeof(struct instance));
	for (size_t i = 0; !err && i < c->capture->collectives.len; i++) {
		struct instance *to = nps_capture__sort(c->capture, &order);

		if (to)
			to->key = (struct nps_sort_key){ call_at(c, i)->begin, i };
		err = c->capture->err;
		step(c);
	}
	err = err ? err : nps_ext_sort__finish(&order);
	while (!err && (next = nps_ext_sort__next(&order))) {
		struct nps_collective *call = call_at(c, next->key.low);
		uint64_t group = nps_hash2(call->group, call->device);
		uint32_t count = nps_map__get(&counts, group);

		call->index = count == NPS_NONE ? 0 : count;
		err = nps_map__put(&counts, group, call->index + 1);
		step(c);
	}
	err = err ? err : order.err;
	nps_ext_sort__free(&order);
	nps_map__free(&counts);
	return err;
}

int nps_collectives__begin(struct nps_collectives *c, struct nps_capture *capture)
{
	int tmpfd = capture->model->tmpfd;

	c->capture = capture;
	nps_vec__init(&c->repeats, tmpfd, sizeof(struct repeat));
	nps_vec__init(&c->lanes, tmpfd, sizeof(struct lane));
	nps_vec__init(&c->names, tmpfd, sizeof(uint32_t));
	nps_vec__init(&c->ids, tmpfd, sizeof(uint32_t));
	return number_calls(c);
}

void nps_collectives__free(struct nps_collectives *c)
{
	if (!c->capture)
		return;
	nps_vec__free(&c->repeats);
	nps_vec__free(&c->names);
	nps_vec__free(&c->ids);
	nps_vec__free(&c->lanes);
	nps_map__free(&c->lane_of);
}

/*
 * Whether the task that runs HOST, which is PART, at START begins another run of its call. It does if this
 * run has that task already. A graph's stream runs what was launched in order: where the order goes back
 * the graph was executed again, even if the log of the task that began it was lost. 1 or 0, negative errno.
 */
static int begins_run(struct nps_collectives *c, const struct nps_host_task *host,
		      const struct nps_part_info *part, uint64_t start)
{
	const struct nps_launch *launch = &NPS_AT(&c->capture->launches, struct nps_launch, host->launch);
	uint64_t key = (uint64_t)part->op << 32 | launch->stream;
	uint32_t run = call_at(c, part->op)->run, i;
	bool begins = part->runs == run + 1;
	struct lane *lane;

	if (launch->model == NPS_NO_ID)
		return begins;
	i = nps_map__get(&c->lane_of, key);
	if (i == NPS_NONE) {
		lane = nps_vec__push(&c->lanes);
		if (!lane || nps_map__put(&c->lane_of, key, c->lanes.len - 1))
			return -ENOMEM;
	} else {
		lane = &NPS_AT(&c->lanes, struct lane, i);
		begins = begins || (lane->run == run && host->launch < lane->launch && start > lane->start);
	}
	*lane = (struct lane){ start, host->launch, run + begins };
	return begins;
}

/* Begins the next run of CALL. 0 or negative errno. */
static int next_run(struct nps_collectives *c, uint32_t call)
{
	struct repeat *repeat = nps_vec__push(&c->repeats);

	if (!repeat)
		return -ENOMEM;
	*repeat = (struct repeat){ .call = call, .run = ++call_at(c, call)->run };
	call_at(c, call)->repeat = c->repeats.len - 1;
	return 0;
}

/* A task ran from START to END. As in the vendor's files, the master plane decides, if it is known. */
static void widen(struct nps_comm_span *span, bool master, uint64_t start, uint64_t end)
{
	if (span->master && !master)
		return;
	if (master && !span->master)
		*span = (struct nps_comm_span){ .master = true };
	span->start = span->start ? NPS_MIN(span->start, start) : start;
	span->end = NPS_MAX(span->end, end);
}

static uint32_t enum_of(uint32_t value, uint32_t most)
{
	return value <= most || value == 255 ? value : INVALID;
}

/*
 * Counts the run of PART into that of its call; *INSTANCE: its number, calls are counted first and then
 * their further runs. The number of the part's run decides nothing, as logs may be lost. 0 or negative
 * errno.
 */
static int assign(struct nps_collectives *c, uint32_t task, const struct nps_host_task *host,
		  struct nps_part_info *part, uint32_t *instance)
{
	uint64_t start = c->capture->model->task.start[task], end = c->capture->model->task.end[task];
	struct nps_collective *call = call_at(c, part->op);
	struct repeat *repeat;
	int err = begins_run(c, host, part, start);

	if (err > 0)
		err = next_run(c, part->op);
	if (err)
		return err;
	part->runs = call->run + 1;
	if (!call->run) {
		widen(&call->span, part->master, start, end);
		call->seen++;
		*instance = part->op;
		return 0;
	}
	repeat = repeat_at(c, call->repeat);
	widen(&repeat->span, part->master, start, end);
	repeat->seen++;
	*instance = c->capture->collectives.len + call->repeat;
	return 0;
}

int nps_collectives__part(struct nps_collectives *c, uint32_t task, const struct nps_host_task *host)
{
	struct nps_capture *capture = c->capture;
	struct nps_model *m = capture->model;
	struct nps_part_info *part = &NPS_AT(&capture->parts, struct nps_part_info, host->part);
	uint64_t start = m->task.start[task], end = m->task.end[task];
	uint32_t instance;
	size_t row;
	int err = assign(c, task, host, part, &instance);

	if (err)
		return err;
	err = nps_table__add(&m->comm_task.t, &row);
	if (err)
		return err;
	m->comm_task.task[row] = task;
	m->comm_task.type[row] = part->known ? part->name : m->na;
	m->comm_task.plane[row] = part->known ? part->plane : NPS_NO_ID;
	m->comm_task.group[row] = NPS_NONE;
	m->comm_task.notify[row] = !part->known ? 0 : NPS_MIN(part->notify, (uint64_t)NPS_NO_NOTIFY);
	m->comm_task.rdma_type[row] = part->known ? enum_of(part->rdma, 5) : NOT_TOLD;
	m->comm_task.src[row] = part->known ? part->local : NPS_NO_ID;
	m->comm_task.dst[row] = part->known ? part->remote : NPS_NO_ID;
	m->comm_task.transport[row] = part->known ? enum_of(part->transport, 4) : NOT_TOLD;
	m->comm_task.size[row] = part->known ? part->bytes : -1;
	m->comm_task.dtype[row] = part->known ? enum_of(part->dtype, 17) : NOT_TOLD;
	m->comm_task.link[row] = part->known ? enum_of(part->link, 8) : NOT_TOLD;
	m->comm_task.op[row] = instance;
	m->comm_task.master[row] = part->master;
	m->comm_task.bandwidth[row] = part->known && end > start ? part->bytes * 1e9 / (end - start)
								 : NPS_NAN;
	m->comm_task.estimate[row] = part->known ? part->estimate : NPS_NAN;
	step(c);
	return 0;
}

/* The last three characters of the group's hash; a group without a name is its hash. */
static void group_digits(const struct nps_collectives *c, uint64_t group, char digits[4])
{
	struct nps_capture *capture = c->capture;
	uint32_t name = nps_dictionary__name(&capture->names, group);
	uint64_t hash = nps_dictionary__has(&capture->names, group)
				? nps_group_hash(nps_model__text(capture->model, name))
				: group;
	char text[24];
	int len = snprintf(text, sizeof(text), "%" PRIu64, hash);

	memcpy(digits, text + (len > 3 ? len - 3 : 0), (len > 3 ? 3 : len) + 1);
}

/* Adds the row of a run. */
static int add_row(struct nps_collectives *c, const struct nps_collective *call, uint32_t run,
		   const struct nps_comm_span *span, uint32_t seen, uint32_t *name)
{
	struct nps_model *m = c->capture->model;
	char digits[4], type[512];
	size_t row;
	int err = nps_table__add(&m->comm_op.t, &row);

	if (err)
		return err;
	group_digits(c, call->group, digits);
	snprintf(type, sizeof(type), "%s", nps_model__text_or_na(m, call->type));
	*name = nps_strings__addf(m->strings, "%s_%s_%u_%u", type, digits, call->index, run + 1);
	if (*name == NPS_NONE)
		return -ENOMEM;
	m->comm_op.name[row] = *name;
	m->comm_op.start[row] = span->start;
	m->comm_op.end[row] = span->end;
	m->comm_op.connection[row] = call->connection;
	m->comm_op.group[row] = call->group ? nps_dictionary__name(&c->capture->names, call->group)
					    : NPS_NONE;
	m->comm_op.id[row] = row + 1;
	m->comm_op.relay[row] = call->relay < 2 ? call->relay : NPS_NULL;
	m->comm_op.retry[row] = call->retry < 2 ? call->retry : NPS_NULL;
	m->comm_op.dtype[row] = call->dtype;
	m->comm_op.algorithm[row] = call->algorithm;
	m->comm_op.count[row] = call->count > INT64_MAX ? NPS_NULL : (int64_t)call->count;
	m->comm_op.type[row] = call->type;
	m->comm_op.device[row] = call->device;
	m->comm_op.ranks[row] = call->ranks ? call->ranks : NPS_NULL;
	m->comm_op.model[row] = call->model;
	m->comm_op.tasks[row] = call->tasks;
	m->comm_op.measured[row] = seen;
	m->comm_op.step[row] = NPS_NONE;
	return 0;
}

static int add_rows(struct nps_collectives *c, struct nps_ext_sort *order)
{
	size_t ncalls = c->capture->collectives.len;
	const struct instance *next;
	uint32_t name = NPS_NONE;
	int err = 0;

	while (!err && (next = nps_ext_sort__next(order))) {
		size_t i = next->key.low;
		const struct repeat *repeat = i < ncalls ? NULL : repeat_at(c, i - ncalls);
		const struct nps_collective *call = call_at(c, repeat ? repeat->call : i);

		if (repeat)
			err = add_row(c, call, repeat->run, &repeat->span, repeat->seen, &name);
		else
			err = add_row(c, call, 0, &call->span, call->seen, &name);
		NPS_AT(&c->names, uint32_t, i) = name;
		NPS_AT(&c->ids, uint32_t, i) = c->capture->model->comm_op.t.len;
		step(c);
	}
	return err ? err : order->err;
}

static int sort_runs(struct nps_collectives *c, struct nps_ext_sort *order)
{
	size_t ncalls = c->capture->collectives.len;
	uint64_t unseen = 0;

	for (size_t i = 0; i < ncalls + c->repeats.len; i++) {
		uint64_t start = i < ncalls ? call_at(c, i)->span.start
					    : repeat_at(c, i - ncalls)->span.start;
		struct instance *to;

		step(c);
		if (!start) {
			unseen++;
			continue;
		}
		to = nps_capture__sort(c->capture, order);
		if (!to)
			return c->capture->err;
		to->key = (struct nps_sort_key){ start, i };
	}
	nps_model__lost(c->capture->model, unseen, "collectives that never ran");
	return nps_ext_sort__finish(order);
}

int nps_collectives__finish(struct nps_collectives *c)
{
	struct nps_model *m = c->capture->model;
	size_t n = c->capture->collectives.len + c->repeats.len;
	struct nps_pace pace = { m, 0 };
	struct nps_ext_sort order;
	int err;

	nps_ext_sort__init(&order, m->tmpfd, sizeof(struct instance));
	err = nps_vec__resize(&c->names, n);
	if (!err)
		err = nps_vec__resize(&c->ids, n);
	if (!err)
		err = sort_runs(c, &order);
	if (!err)
		err = add_rows(c, &order);
	nps_ext_sort__free(&order);
	for (size_t i = 0; !err && i < m->comm_task.t.len; i++) {
		uint32_t instance = m->comm_task.op[i], row = NPS_AT(&c->ids, uint32_t, instance);

		m->comm_task.name[i] = NPS_AT(&c->names, uint32_t, instance);
		m->comm_task.op[i] = row;
		m->comm_task.group[i] = m->comm_op.group[row - 1];
		nps_pace__step(&pace);
		step(c);
	}
	return err;
}
