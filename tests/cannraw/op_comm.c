/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collective operations: a NODE span with one HCCL span and task per step, spread over the planes'
 * streams; or with --comm-ffts one FFTS+ task whose contexts are the steps.
 */
#include "gen.h"

#include <string.h>

#include "bytes.h"

#define HCCL_BYTES 256
#define OP_BYTES 64
#define COMM_KINDS 4

struct step {
	const struct name *name;
	uint32_t rt, plane, remote, transport, link, dtype;
	enum sqe sqe;
	enum sub sub;
	uint64_t bytes, notify, src, dst;
};

struct comm {
	uint64_t id;
	uint32_t kind;
	struct group *group;
	uint64_t index, count;
	uint32_t local, dtype;
	bool relay, retry;
};

static struct step make_step(struct gen *g, const struct comm *c, uint32_t i)
{
	struct step s = { .plane = i % PLANES, .dtype = c->dtype, .transport = 2, .link = 0 };
	uint64_t r = gen_rnd(g);

	s.name = &g->small_ops[(i / PLANES + i) % 4];
	s.remote = (c->local + 1 + (uint32_t)(r % (c->group->size - 1))) % c->group->size;
	s.rt = RT_MEMCPY_ASYNC;
	s.sqe = SQE_SDMA;
	s.sub = SUB_SDMA;
	if (s.name == &g->small_ops[1] || s.name == &g->small_ops[2]) {
		bool wait = s.name == &g->small_ops[2];

		s.rt = wait ? RT_NOTIFY_WAIT : RT_NOTIFY_RECORD;
		s.sqe = wait ? SQE_NOTIFY_WAIT : SQE_NOTIFY_RECORD;
		s.sub = wait ? SUB_NOTIFY_WAIT : SUB_NOTIFY_RECORD;
		s.notify = mix64(c->id * 8 + i) >> 16;
	} else {
		s.transport = 0;
		s.link = 1;
		s.bytes = 4096 * (1 + (r >> 16) % 4096);
		s.src = 0x120000000000 + (r >> 32) * 512;
		s.dst = 0x130000000000 + (r >> 32) * 512;
	}
	return s;
}

static void info_record(struct gen *g, struct thread *t, const struct comm *c, const struct step *s,
			uint32_t context, uint64_t stamp)
{
	const double estimated = (double)s->bytes / 20000.0;
	uint8_t r[HCCL_BYTES];
	uint64_t bits;

	memcpy(&bits, &estimated, sizeof(bits));
	record_head(g, t, r, sizeof(r), LEVEL_HCCL, 10, stamp, 232);
	put64(r + 24, s->name->hash);
	put64(r + 32, mix64(c->id));
	put64(r + 40, c->group->name.hash);
	put32(r + 48, c->local);
	put32(r + 52, s->remote);
	put32(r + 56, c->group->size);
	put32(r + 64, s->plane);
	put32(r + 68, context);
	put64(r + 72, s->notify);
	put32(r + 80, 0xFFFFFFFF);
	put32(r + 84, s->plane != 0);
	put64(r + 88, bits);
	put64(r + 96, s->src);
	put64(r + 104, s->dst);
	put64(r + 112, s->bytes);
	put32(r + 124, s->dtype);
	put32(r + 128, s->link);
	put32(r + 132, s->transport);
	put32(r + 136, 0xFFFFFFFF);
	burst_put(g, t, HF_HCCL, r);
}

static void truth_step(struct gen *g, const struct comm *c, const struct step *s, const struct task *task)
{
	struct truth *tr = &g->truth;

	g->n.comm_tasks++;
	if (!tr->path)
		return;
	truth_begin(tr, "comm_task");
	truth_uint(tr, "op", c->id);
	truth_task_key(g, task);
	truth_str(tr, "name", s->name->text);
	truth_str(tr, "group", c->group->name.text);
	truth_uint(tr, "tag", mix64(c->id));
	truth_uint(tr, "local", c->local);
	truth_uint(tr, "remote", s->remote);
	truth_uint(tr, "ranks", c->group->size);
	truth_uint(tr, "plane", s->plane);
	truth_uint(tr, "notify", s->notify);
	truth_uint(tr, "role", s->plane != 0);
	truth_uint(tr, "src", s->src);
	truth_uint(tr, "dst", s->dst);
	truth_uint(tr, "bytes", s->bytes);
	truth_uint(tr, "dtype", s->dtype);
	truth_uint(tr, "link", s->link);
	truth_uint(tr, "transport", s->transport);
	truth_int(tr, "conn", task->conn);
	truth_end(tr);
}

static void widen(uint64_t range[2], uint64_t start, uint64_t end)
{
	if (start < range[0])
		range[0] = start;
	if (end > range[1])
		range[1] = end;
}

static void step_on_stream(struct gen *g, struct thread *t, struct device *d, const struct comm *c,
			   uint32_t i, int64_t conn, uint64_t range[2])
{
	const struct step s = make_step(g, c, i);
	const struct launch l = { .rt = s.rt,
				  .api = s.rt == RT_MEMCPY_ASYNC ? RT_API_MEMCPY_ASYNC : RT_API_LAUNCH };
	struct stream *st = &d->comm[s.plane];
	struct task task = new_task("comm", s.sqe);
	struct span span;
	uint64_t start;

	advance(g, t, 60, 200);
	span = span_begin(g, t, LEVEL_HCCL, s.plane ? HCCL_SLAVE : HCCL_MASTER, s.name);
	task.conn = conn;
	task.name = s.name;
	submit(g, t, st, &l, &task);
	info_record(g, t, c, &s, NO_CONTEXT, advance(g, t, 50, 200));
	span_end(g, t, &span, false);

	start = device_slot(g, d, st, task.track);
	st->device_end = start + device_ticks(d, kernel_ns(g));
	device_task(g, d, &task, start, st->device_end);
	truth_step(g, c, &s, &task);
	widen(range, start, st->device_end);
}

static void steps_as_contexts(struct gen *g, struct thread *t, struct device *d, const struct comm *c,
			      uint32_t count, int64_t conn, uint64_t range[2])
{
	const struct launch l = { .rt = RT_FFTS_PLUS, .api = RT_API_LAUNCH };
	const uint32_t bounds[2] = { 0, count - 1 };
	struct stream *st = &d->comm[0];
	struct task task = new_task("comm", SQE_AIC);
	struct span span;
	uint64_t stamp, start;

	advance(g, t, 60, 200);
	span = span_begin(g, t, LEVEL_HCCL, HCCL_MASTER, &g->small_ops[0]);
	task.conn = conn;
	submit(g, t, st, &l, &task);
	stamp = advance(g, t, 50, 200);
	context_record(g, t, LEVEL_HCCL, &g->small_ops[0], bounds, 2, stamp);
	start = device_slot(g, d, st, task.track);
	for (uint32_t i = 0; i < count; i++) {
		struct step s = make_step(g, c, i);
		uint64_t from = start + device_ticks(d, gen_range(g, 0, 3000));
		uint64_t end = from + device_ticks(d, kernel_ns(g));

		info_record(g, t, c, &s, i, stamp);
		task.context = i;
		task.name = s.name;
		task.sub = s.sub;
		device_task(g, d, &task, from, end);
		truth_step(g, c, &s, &task);
		widen(range, from, end);
	}
	st->device_end = range[1];
	span_end(g, t, &span, false);
}

static void op_record(struct gen *g, struct thread *t, const struct comm *c, uint64_t stamp)
{
	uint8_t r[OP_BYTES];

	record_head(g, t, r, sizeof(r), LEVEL_NODE, 10, stamp, 26);
	r[24] = (uint8_t)(c->relay | c->retry << 1);
	r[25] = (uint8_t)c->dtype;
	put64(r + 26, g->alg.hash);
	put64(r + 34, c->count);
	put64(r + 42, c->group->name.hash);
	burst_put(g, t, HF_HCCL_OP, r);
}

static void truth_comm(struct gen *g, const struct device *d, const struct thread *t, const struct comm *c,
		       uint32_t steps, const struct span *node, const uint64_t range[2])
{
	struct truth *tr = &g->truth;

	g->n.comm_ops++;
	if (!tr->path)
		return;
	truth_begin(tr, "comm_op");
	truth_uint(tr, "op", c->id);
	truth_uint(tr, "device", d->id);
	truth_uint(tr, "stream", d->comm[0].id);
	truth_str(tr, "name", g->comm_names[c->kind].text);
	truth_str(tr, "group", c->group->name.text);
	truth_uint(tr, "group_hash", c->group->name.hash);
	truth_uint(tr, "index", c->index);
	truth_str(tr, "alg", g->alg.text);
	truth_uint(tr, "count", c->count);
	truth_uint(tr, "dtype", c->dtype);
	truth_bool(tr, "relay", c->relay);
	truth_bool(tr, "retry", c->retry);
	truth_uint(tr, "tasks", steps);
	truth_uint(tr, "tid", t->tid);
	truth_int(tr, "conn", (int64_t)node->id);
	truth_int(tr, "host_begin_ns", host_wall(g, node->begin));
	truth_int(tr, "host_end_ns", host_wall(g, t->now));
	truth_device_time(g, d, "start", range[0]);
	truth_device_time(g, d, "end", range[1]);
	truth_end(tr);
}

void op_comm(struct gen *g, struct thread *t, struct device *d, uint64_t index)
{
	uint64_t r = gen_rnd(g), range[2] = { UINT64_MAX, 0 }, stamp;
	struct comm c = { .id = index,
			  .kind = (uint32_t)(r % COMM_KINDS),
			  .group = &g->groups[index % 3 == 2] };
	const struct node n = { .name = &g->comm_names[c.kind],
				.type = &g->comm_names[c.kind],
				.ge_type = GE_HCCL };
	struct span acl, node;

	c.index = c.group->ops++;
	c.local = d->id % c.group->size;
	c.count = 1 + (r >> 8) % 100000000;
	c.dtype = (uint32_t)(r >> 40) % 5;
	c.relay = r >> 48 & 1;
	c.retry = (r >> 49 & 7) == 0;
	acl = span_begin(g, t, LEVEL_ACL, ACL_HCCL + c.kind, NULL);
	advance(g, t, 300, 900);
	node = span_begin(g, t, LEVEL_NODE, NODE_LAUNCH, n.name);
	if (g->o.comm_ffts)
		steps_as_contexts(g, t, d, &c, g->o.comm_tasks, (int64_t)node.id, range);
	else
		for (uint32_t i = 0; i < g->o.comm_tasks; i++)
			step_on_stream(g, t, d, &c, i, (int64_t)node.id, range);
	stamp = advance(g, t, 100, 300);
	node_records(g, t, &n, stamp);
	op_record(g, t, &c, stamp);
	advance(g, t, 50, 300);
	truth_comm(g, d, t, &c, g->o.comm_tasks, &node, range);
	span_end(g, t, &node, false);
	advance(g, t, 100, 300);
	span_end(g, t, &acl, false);
}
