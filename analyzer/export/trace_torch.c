/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The framework's blocks of trace_view.json (outputs 2.1, 2.3): operators, the task queue, the lanes'
 * names, forward to backward, Python functions, garbage collection.
 */
#include "export/run_names.h"
#include "export/trace_event.h"

#include <stdio.h>

struct torch {
	struct nps_trace *t;
	const struct nps_torch_table *a;
	struct nps_trace_lanes threads, dequeuers, collectors;
	struct nps_trace_bits enqueued, dequeued; /* correlation ids */
	struct nps_trace_rows stacks; /* first frame of a call chain */
	uint32_t last_tid;
};

/* --- what there is --- */

/* The queue numbers its entries; larger numbers are none of its. */
static bool is_number(int64_t value)
{
	return value >= 0 && value <= UINT32_MAX;
}

static bool name_is_dequeue(const struct nps_trace *t, uint32_t name)
{
	return !strncmp(nps_trace__text(t, name), "Dequeue", 7);
}

static int scan_queue(struct torch *s, size_t i)
{
	bool dequeue = name_is_dequeue(s->t, s->a->name[i]);
	int err = dequeue ? nps_trace_lanes__add(&s->dequeuers, 0, s->a->gtid[i]) : 0;

	if (err || !is_number(s->a->correlation[i]))
		return err;
	return nps_trace_bits__set(dequeue ? &s->dequeued : &s->enqueued, s->a->correlation[i]);
}

static int scan_threads(struct torch *s)
{
	const struct nps_gc_table *gc = &s->t->m->gc;
	int err = 0;

	for (size_t i = 0; !err && i < s->a->t.len; i++) {
		nps_pace__step(&s->t->pace);
		if (s->a->type[i] == NPS_API_TORCH_MSTX)
			continue;
		err = nps_trace_lanes__add(&s->threads, 0, s->a->gtid[i]);
		s->last_tid = NPS_MAX(s->last_tid, (uint32_t)s->a->gtid[i]);
		if (!err && s->a->type[i] == NPS_API_TORCH_QUEUE)
			err = scan_queue(s, i);
	}
	for (size_t i = 0; !err && i < gc->t.len; i++)
		err = nps_trace_lanes__add(&s->collectors, s->t->device, gc->gtid[i]);
	return err;
}

static int scan_stacks(struct torch *s)
{
	const struct nps_frame_table *frame = &s->t->m->frame;
	uint32_t first = UINT32_MAX, last = 0;
	int err;

	for (size_t i = 0; i < frame->t.len; i++) {
		first = NPS_MIN(first, frame->id[i]);
		last = NPS_MAX(last, frame->id[i]);
		nps_pace__step(&s->t->pace);
	}
	err = nps_trace_rows__init(&s->stacks, s->t->m->tmpfd, first, last, frame->t.len);
	for (size_t i = 0; !err && i < frame->t.len; i++) {
		if (!i || frame->id[i - 1] != frame->id[i])
			nps_trace_rows__put(&s->stacks, frame->id[i], i);
		nps_pace__step(&s->t->pace);
	}
	return err;
}

/* --- events --- */

static void torch_event_begin(struct torch *s, size_t i, const char *name, const char *cat)
{
	struct nps_writer *w = &s->t->w;

	nps_trace__slice(w, name, s->t->m->pid, (uint32_t)s->a->gtid[i], s->a->start[i], s->a->end[i]);
	nps_writer__lit(w, ",\"cat\":\"");
	nps_writer__lit(w, cat);
	nps_writer__lit(w, "\",\"args\":{");
}

static void torch_event_end(struct torch *s)
{
	nps_writer__lit(&s->t->w, "}");
	nps_trace__end(&s->t->w);
}

/* One end of a flow between two events of the framework. */
static void flow(struct nps_trace *t, const char *name, const char *cat, uint64_t id, uint64_t pid,
		 uint64_t tid, uint64_t time, bool begin)
{
	struct nps_writer *w = &t->w;

	nps_writer__item(w);
	nps_writer__lit(w, "{\"bp\":\"e\",\"name\":\"");
	nps_writer__lit(w, name);
	nps_trace__u64(w, "\",\"id\":", id);
	nps_trace__lane(w, pid, tid);
	nps_trace__at(w, time);
	nps_writer__lit(w, ",\"cat\":\"");
	nps_writer__lit(w, cat);
	nps_writer__lit(w, begin ? "\",\"ph\":\"s\"}" : "\",\"ph\":\"f\"}");
}

static void put_number_arg(struct nps_writer *w, const char *key, int64_t value, int64_t unknown)
{
	nps_writer__lit(w, key);
	nps_writer__i64(w, value == NPS_NULL ? unknown : value);
}

/* The parts of a list each on a line of their own, as the viewer shows them. */
static void list_part(struct nps_writer *w, const char *text)
{
	for (;;) {
		const char *semicolon = strchr(text, ';');
		size_t len = semicolon ? (size_t)(semicolon - text) : strlen(text);

		nps_writer__json_part(w, text, len);
		if (!semicolon)
			return;
		nps_writer__lit(w, ";\\r\\n");
		text = semicolon + 1;
		if (text[0] == '\r' && text[1] == '\n')
			text += 2;
	}
}

static void put_list_arg(struct torch *s, const char *key, uint32_t text)
{
	struct nps_writer *w = &s->t->w;

	if (text == NPS_NONE || text == s->t->m->na)
		return;
	nps_writer__lit(w, key);
	list_part(w, nps_trace__text(s->t, text));
	nps_writer__lit(w, "\"");
}

static void call_stack(struct torch *s, int64_t chain)
{
	const struct nps_frame_table *frame = &s->t->m->frame;
	struct nps_writer *w = &s->t->w;
	uint32_t row = is_number(chain) ? nps_trace_rows__get(&s->stacks, chain) : NPS_NONE;

	if (row == NPS_NONE)
		return;
	nps_writer__lit(w, ",\"Call stack\":\"");
	for (size_t i = row; i < frame->t.len && frame->id[i] == (uint32_t)chain; i++) {
		if (i > row)
			nps_writer__lit(w, ";\\r\\n");
		list_part(w, nps_trace__text(s->t, frame->stack[i]));
	}
	nps_writer__lit(w, "\"");
}

/* `flops:123;` among what else was recorded of the operator. */
static void flops(struct torch *s, uint32_t extra)
{
	const char *at = extra == NPS_NONE ? NULL : strstr(nps_trace__text(s->t, extra), "flops:");
	size_t len;

	if (!at)
		return;
	at += strlen("flops:");
	len = strspn(at, "0123456789");
	if (!len || len > 18)
		return;
	nps_writer__lit(&s->t->w, ",\"flops\":");
	nps_writer__bytes(&s->t->w, at, len);
}

static void write_operators(struct torch *s)
{
	const struct nps_torch_table *a = s->a;

	for (size_t i = 0; i < a->t.len; i++) {
		nps_pace__step(&s->t->pace);
		if (a->type[i] != NPS_API_TORCH_OP || !a->start[i])
			continue;
		torch_event_begin(s, i, nps_trace__text(s->t, a->name[i]), "cpu_op");
		put_number_arg(&s->t->w, "\"Sequence number\":", a->sequence[i], -1);
		put_number_arg(&s->t->w, ",\"Fwd thread id\":", a->forward_tid[i], 0);
		put_list_arg(s, ",\"Input Dims\":\"", a->input_shapes[i]);
		put_list_arg(s, ",\"Input type\":\"", a->input_types[i]);
		put_list_arg(s, ",\"Module Hierarchy\":\"", a->modules[i]);
		flops(s, a->extra[i]);
		call_stack(s, a->callchain[i]);
		if (nps_call__ending(a->ending[i]))
			nps_trace__string(&s->t->w, ",\"end\":", nps_call__ending(a->ending[i]));
		torch_event_end(s);
	}
}

static void write_queue(struct torch *s, bool dequeue)
{
	const struct nps_torch_table *a = s->a;
	struct nps_trace_bits *other = dequeue ? &s->enqueued : &s->dequeued;

	for (size_t i = 0; i < a->t.len; i++) {
		const char *name;

		nps_pace__step(&s->t->pace);
		if (a->type[i] != NPS_API_TORCH_QUEUE || !a->start[i] ||
		    name_is_dequeue(s->t, a->name[i]) != dequeue)
			continue;
		name = s->t->gen_a && !dequeue ? "Enqueue" : nps_trace__text(s->t, a->name[i]);
		torch_event_begin(s, i, name, dequeue ? "dequeue" : "enqueue");
		put_number_arg(&s->t->w, "\"correlation_id\":", a->correlation[i], -1);
		torch_event_end(s);
		if (is_number(a->correlation[i]) && nps_trace_bits__has(other, a->correlation[i]))
			flow(s->t, "enqueue_to_dequeue", "async_task_queue", a->correlation[i], s->t->m->pid,
			     (uint32_t)a->gtid[i], a->start[i], !dequeue);
	}
}

static void python_ids(struct nps_writer *w, int64_t id, int64_t parent, int64_t module)
{
	put_number_arg(w, "\"Python id\":", id, -1);
	if (parent != NPS_NULL)
		put_number_arg(w, ",\"Python parent id\":", parent, -1);
	else
		nps_writer__lit(w, ",\"Python parent id\":null");
	if (module != NPS_NULL)
		put_number_arg(w, ",\"Python module id\":", module, -1);
}

static void functions(struct torch *s)
{
	const struct nps_torch_table *a = s->a;
	struct nps_writer *w = &s->t->w;

	for (size_t i = 0; i < a->t.len; i++) {
		nps_pace__step(&s->t->pace);
		if (a->type[i] != NPS_API_PYTHON || !a->start[i])
			continue;
		torch_event_begin(s, i, nps_trace__text(s->t, a->name[i]), "python_function");
		if (a->python_id[i] != NPS_NULL) /* a database does not have them */
			python_ids(w, a->python_id[i], a->python_parent[i], a->python_module[i]);
		torch_event_end(s);
	}
}

/* The threads' rows; what takes from the queue is shown last. */
static void torch_name_threads(struct torch *s)
{
	struct nps_trace *t = s->t;
	char name[64];

	if (!s->threads.list.len)
		return;
	nps_trace__name_layer(t, NPS_TRACE_PYTHON, 0);
	for (size_t i = 0; i < s->threads.list.len; i++) {
		uint32_t tid = NPS_AT(&s->threads.list, struct nps_trace_lane, i).tid;
		bool last = nps_map__get(&s->dequeuers.seen, tid) != NPS_NONE;

		snprintf(name, sizeof(name), "Thread %u", tid);
		nps_trace__name_thread(&t->w, t->m->pid, tid, name);
		nps_trace__sort_thread(&t->w, t->m->pid, tid, last ? (uint64_t)s->last_tid + 1 : tid);
	}
}

static void collections(struct torch *s)
{
	const struct nps_gc_table *gc = &s->t->m->gc;
	uint64_t pid = nps_trace__pid(s->t, NPS_TRACE_GC, s->t->device);

	if (!gc->t.len)
		return;
	for (size_t i = 0; i < gc->t.len; i++) {
		nps_trace__slice(&s->t->w, "GC", pid, (uint32_t)gc->gtid[i], gc->start[i], gc->end[i]);
		nps_writer__lit(&s->t->w, ",\"cat\":\"GC\",\"args\":{}");
		nps_trace__end(&s->t->w);
		nps_pace__step(&s->t->pace);
	}
	nps_trace__name_layer(s->t, NPS_TRACE_GC, s->t->device);
	nps_trace__name_lanes(s->t, &s->collectors, NPS_TRACE_GC, "Thread", false);
}

/* --- forward to backward --- */

/* Of forward operators with a sequence number the last, innermost one; of backward operators the first. */
static int find_pairs(struct torch *s, struct nps_trace_rows *forward, struct nps_trace_rows *backward,
		      int64_t first, int64_t last, size_t count)
{
	const struct nps_torch_table *a = s->a;
	int err = nps_trace_rows__init(forward, s->t->m->tmpfd, first, last, count);

	if (err)
		return err;
	err = nps_trace_rows__init(backward, s->t->m->tmpfd, first, last, count);
	for (size_t i = 0; !err && i < a->t.len; i++) {
		nps_pace__step(&s->t->pace);
		if (a->type[i] != NPS_API_TORCH_OP || a->sequence[i] < 0 || !a->start[i])
			continue;
		if (a->forward_tid[i] == 0 || a->forward_tid[i] == NPS_NULL)
			nps_trace_rows__put(forward, a->sequence[i], i);
		else if (nps_trace_rows__get(backward, a->sequence[i]) == NPS_NONE)
			nps_trace_rows__put(backward, a->sequence[i], i);
	}
	return err;
}

static void write_pair(struct torch *s, uint64_t sequence, uint32_t from, uint32_t to)
{
	const struct nps_torch_table *a = s->a;

	if (from == NPS_NONE || to == NPS_NONE || a->gtid[from] == a->gtid[to])
		return;
	flow(s->t, "fwdbwd", "fwdbwd", sequence, s->t->m->pid, (uint32_t)a->gtid[from], a->start[from], true);
	flow(s->t, "fwdbwd", "fwdbwd", sequence, s->t->m->pid, (uint32_t)a->gtid[to], a->start[to], false);
}

static int forward_backward(struct torch *s)
{
	const struct nps_torch_table *a = s->a;
	struct nps_trace_rows forward = { 0 }, backward = { 0 };
	int64_t first = INT64_MAX, last = -1;
	size_t count = 0;
	int err;

	for (size_t i = 0; i < a->t.len; i++) {
		nps_pace__step(&s->t->pace);
		if (a->type[i] != NPS_API_TORCH_OP || a->sequence[i] < 0)
			continue;
		first = NPS_MIN(first, a->sequence[i]);
		last = NPS_MAX(last, a->sequence[i]);
		count++;
	}
	if (!count)
		return 0;
	err = find_pairs(s, &forward, &backward, first, last, count);
	for (size_t i = 0; !err && i < forward.rows.len; i++)
		write_pair(s, first + i, nps_trace_rows__get(&forward, first + i),
			   nps_trace_rows__get(&backward, first + i));
	nps_trace_rows__free(&forward);
	nps_trace_rows__free(&backward);
	return err;
}

int nps_trace__torch(struct nps_trace *t)
{
	struct torch s = { .t = t, .a = &t->m->torch };
	int err;

	nps_trace_lanes__init(&s.threads, t->m->tmpfd);
	nps_trace_lanes__init(&s.dequeuers, t->m->tmpfd);
	nps_trace_lanes__init(&s.collectors, t->m->tmpfd);
	nps_vec__init(&s.stacks.rows, t->m->tmpfd, sizeof(uint32_t));
	err = scan_threads(&s);
	err = err ? err : scan_stacks(&s);
	if (err)
		goto out;
	write_operators(&s);
	write_queue(&s, false);
	write_queue(&s, true);
	torch_name_threads(&s);
	err = forward_backward(&s);
	if (err)
		goto out;
	functions(&s);
	collections(&s);
out:
	nps_trace_lanes__free(&s.threads);
	nps_trace_lanes__free(&s.dequeuers);
	nps_trace_lanes__free(&s.collectors);
	nps_trace_bits__free(&s.enqueued);
	nps_trace_bits__free(&s.dequeued);
	nps_trace_rows__free(&s.stacks);
	return err;
}

/* --- operators to the device --- */

#define SEVERAL (NPS_NONE - 1) /* operators that share the link: it is no launch */

/* Row of the operator that has a link id. */
static int find_operators(struct nps_trace *t, struct nps_trace_rows *by_link)
{
	const struct nps_torch_table *a = &t->m->torch;
	int64_t first = INT64_MAX, last = -1;
	size_t count = 0;
	int err;

	for (size_t i = 0; i < a->t.len; i++) {
		nps_pace__step(&t->pace);
		if (a->type[i] != NPS_API_TORCH_OP || a->connection[i] < 0)
			continue;
		first = NPS_MIN(first, a->connection[i]);
		last = NPS_MAX(last, a->connection[i]);
		count++;
	}
	err = nps_trace_rows__init(by_link, t->m->tmpfd, first, count ? last : 0, count);
	for (size_t i = 0; !err && i < a->t.len; i++) {
		nps_pace__step(&t->pace);
		if (a->type[i] == NPS_API_TORCH_OP && a->connection[i] >= 0 && a->start[i])
			nps_trace_rows__put(by_link, a->connection[i], i);
	}
	return err;
}

/* Row of the operator that made a CANN call. */
static int torch_find_launchers(struct nps_trace *t, struct nps_trace_rows *by_call)
{
	const struct nps_link_table *link = &t->m->link;
	struct nps_trace_rows by_link = { 0 };
	int err = nps_trace_rows__init(by_call, t->m->tmpfd, t->first_conn, t->last_conn,
				       nps_trace__connections(t));

	if (err)
		return err;
	err = find_operators(t, &by_link);
	for (size_t i = 0; !err && i < link->t.len; i++) {
		uint32_t op = nps_trace_rows__get(&by_link, link->id[i]), other;

		nps_pace__step(&t->pace);
		if (op == NPS_NONE)
			continue;
		other = nps_trace_rows__get(by_call, link->connection[i]);
		nps_trace_rows__put(by_call, link->connection[i],
				    other == NPS_NONE || other == op ? op : SEVERAL);
	}
	nps_trace_rows__free(&by_link);
	return err;
}

static void torch_to_npu(struct nps_trace *t, struct nps_trace_rows *by_call, const struct nps_item *to,
			 uint64_t pid, uint64_t tid)
{
	const struct nps_torch_table *a = &t->m->torch;
	uint32_t op = nps_trace_rows__get(by_call, to->connection);

	if (op == NPS_NONE || op == SEVERAL || to->start == t->last_flow)
		return;
	t->last_flow = to->start; /* the time is the flow's id */
	flow(t, "torch_to_npu", "async_npu", to->start, t->m->pid, (uint32_t)a->gtid[op], a->start[op], true);
	flow(t, "torch_to_npu", "async_npu", to->start, pid, tid, to->start, false);
}

int nps_trace__torch_to_npu(struct nps_trace *t)
{
	struct nps_trace_rows by_call = { 0 };
	struct nps_timeline timeline;
	struct nps_item to;
	int err, closed;

	if (!t->launches || !t->m->link.t.len)
		return 0;
	err = torch_find_launchers(t, &by_call);
	nps_timeline__open(&timeline, t->m, NPS_ITEM(TASK) | NPS_ITEM(COLLECTIVE));
	while (!err && nps_timeline__next(&timeline, &to)) {
		if (to.connection == NPS_NO_ID)
			continue;
		if (to.kind == NPS_ITEM_COLLECTIVE)
			torch_to_npu(t, &by_call, &to,
				     nps_trace__pid(t, NPS_TRACE_COMM, nps_item__device(&to)),
				     nps_trace__comm_lane(t, &to));
		else if (nps_trace__is_launch(t, to.row))
			torch_to_npu(t, &by_call, &to,
				     nps_trace__pid(t, NPS_TRACE_HARDWARE, nps_item__device(&to)),
				     nps_item__tid(&to));
	}
	closed = nps_timeline__close(&timeline);
	nps_trace_rows__free(&by_call);
	return err ? err : closed;
}
