/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host records. Each thread gathers a burst of each kind before it reaches the file, so that a
 * file is sorted neither by time nor by thread.
 */
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

#define MAGIC 0x5A5A
#define BURST 64
#define API_BYTES 40
#define COMPACT_BYTES 64
#define ADDITIONAL_BYTES 256
#define BACKLOG_NS 2000000
#define TENSORS_A_RECORD 5
#define CONTEXTS_A_RECORD 55

static const struct {
	const char *name;
	size_t size; /* 0: text */
} host_files[HOST_FILES] = {
	[HF_API] = { "aging.api_event.data", API_BYTES },
	[HF_API_STATIC] = { "unaging.api_event.data", API_BYTES },
	[HF_TRACK] = { "aging.compact.task_track", COMPACT_BYTES },
	[HF_TRACK_STATIC] = { "unaging.compact.task_track", COMPACT_BYTES },
	[HF_NODE] = { "aging.compact.node_basic_info", COMPACT_BYTES },
	[HF_NODE_STATIC] = { "unaging.compact.node_basic_info", COMPACT_BYTES },
	[HF_ATTR] = { "aging.compact.node_attr_info", COMPACT_BYTES },
	[HF_TENSOR] = { "aging.additional.tensor_info", ADDITIONAL_BYTES },
	[HF_TENSOR_STATIC] = { "unaging.additional.tensor_info", ADDITIONAL_BYTES },
	[HF_CONTEXT] = { "aging.additional.context_id_info", ADDITIONAL_BYTES },
	[HF_HCCL] = { "aging.additional.hccl_info", ADDITIONAL_BYTES },
	[HF_HCCL_OP] = { "aging.compact.hccl_op_info", COMPACT_BYTES },
	[HF_MEMCPY] = { "aging.compact.memcpy_info", COMPACT_BYTES },
	[HF_MSTX] = { "aging.additional.msproftx", ADDITIONAL_BYTES },
	[HF_GRAPH] = { "unaging.additional.graph_id_map", ADDITIONAL_BYTES },
	[HF_HASH_DIC] = { "unaging.additional.hash_dic", 0 },
	[HF_TYPE_DIC] = { "unaging.additional.type_info_dic", 0 },
};

static void next_limit(struct gen *g, struct burst *b)
{
	b->limit = (uint32_t)gen_range(g, BURST / 4, BURST);
}

void host_open(struct gen *g)
{
	char dir[2900];

	snprintf(dir, sizeof(dir), "%s/data", g->host_dir);
	for (int f = 0; f < HOST_FILES; f++)
		slices_open(&g->files[f], dir, host_files[f].name, g->o.straddle, !g->o.no_done);
	for (uint32_t i = 0; i < g->o.threads; i++)
		for (int f = 0; f < HF_BURSTS; f++) {
			struct burst *b = &g->threads[i].bursts[f];

			b->buf = malloc(BURST * host_files[f].size);
			need(b->buf != NULL, "burst");
			next_limit(g, b);
		}
}

static void burst_flush(struct gen *g, struct thread *t, enum host_file f)
{
	struct burst *b = &t->bursts[f];

	if (b->count)
		slices_put(&g->files[f], b->buf, b->count * host_files[f].size, b->count);
	b->count = 0;
	next_limit(g, b);
}

void host_close(struct gen *g)
{
	for (uint32_t i = 0; i < g->o.threads; i++)
		for (int f = 0; f < HF_BURSTS; f++) {
			burst_flush(g, &g->threads[i], f);
			free(g->threads[i].bursts[f].buf);
		}
	for (int f = 0; f < HOST_FILES; f++)
		slices_close(&g->files[f]);
}

void burst_put(struct gen *g, struct thread *t, enum host_file f, const uint8_t *record)
{
	struct burst *b = &t->bursts[f];

	memcpy(b->buf + b->count * host_files[f].size, record, host_files[f].size);
	if (++b->count >= b->limit)
		burst_flush(g, t, f);
}

void record_head(struct gen *g, const struct thread *t, uint8_t *record, size_t size, uint32_t level,
		 uint32_t type, uint64_t stamp, uint32_t payload)
{
	memset(record, 0, size);
	put16(record, MAGIC);
	put16(record + 2, level);
	put32(record + 4, type);
	put32(record + 8, t->tid);
	put32(record + 12, payload);
	put64(record + 16, host_value(g, stamp));
}

struct span span_begin(struct gen *g, const struct thread *t, uint32_t level, uint32_t type,
		       const struct name *item)
{
	return (struct span){ .level = level,
			      .type = type,
			      .begin = t->now,
			      .id = g->api_ids++,
			      .item = item ? item->hash : 0,
			      .item_name = item };
}

static void api_record(struct gen *g, struct thread *t, const struct span *s, uint64_t first, uint64_t second,
		       enum host_file f)
{
	uint8_t r[API_BYTES];

	put16(r, MAGIC);
	put16(r + 2, s->level);
	put32(r + 4, s->type);
	put32(r + 8, t->tid);
	put32(r + 12, s->reserve);
	put64(r + 16, first);
	put64(r + 24, second);
	put64(r + 32, s->item);
	burst_put(g, t, f, r);
}

static void api_truth(struct gen *g, const struct thread *t, const struct span *s)
{
	struct truth *tr = &g->truth;

	g->n.apis++;
	if (!tr->path)
		return;
	truth_begin(tr, "api");
	truth_uint(tr, "id", s->id);
	truth_uint(tr, "level", s->level);
	truth_uint(tr, "type", s->type);
	truth_str(tr, "name", api_name(g, s->level, s->type));
	truth_uint(tr, "tid", t->tid);
	truth_uint(tr, "begin_ticks", host_value(g, s->begin));
	truth_uint(tr, "end_ticks", host_value(g, t->now));
	truth_int(tr, "begin_ns", host_wall(g, s->begin));
	truth_int(tr, "end_ns", host_wall(g, t->now));
	truth_uint(tr, "reserve", s->reserve);
	truth_uint(tr, "item", s->item);
	if (s->item_name)
		truth_bytes(tr, "item_name", s->item_name->text, s->item_name->len);
	truth_end(tr);
}

void span_end(struct gen *g, struct thread *t, const struct span *s, bool unaging)
{
	api_record(g, t, s, host_value(g, s->begin), host_value(g, t->now), unaging ? HF_API_STATIC : HF_API);
	api_truth(g, t, s);
}

void span_end_events(struct gen *g, struct thread *t, const struct span *s)
{
	api_record(g, t, s, host_value(g, s->begin), UINT64_MAX, HF_API);
	api_record(g, t, s, host_value(g, t->now), UINT64_MAX, HF_API);
	api_truth(g, t, s);
}

static void track_record(struct gen *g, struct thread *t, const struct stream *st, const struct launch *l,
			 uint32_t task_word, uint64_t stamp)
{
	uint8_t r[COMPACT_BYTES];

	record_head(g, t, r, sizeof(r), LEVEL_RUNTIME, 802, stamp, 40);
	put16(r + 24, st->device);
	put16(r + 26, st->id);
	put32(r + 28, task_word);
	put64(r + 32, l->rt);
	put64(r + 40, l->kernel ? l->kernel->hash : 0);
	if (l->rt == RT_MODEL_EXECUTE) {
		put32(r + 48, l->model_id);
	} else {
		put16(r + 48, l->blocks);
		put16(r + 50, l->blocks ? 64 : 0);
		r[52] = (uint8_t)(l->ratio & 7);
	}
	burst_put(g, t, l->unaging ? HF_TRACK_STATIC : HF_TRACK, r);
}

/* Both host and device record a flip: the host in its task records, the device in its track. */
static void flip(struct gen *g, struct thread *t, struct stream *st, uint32_t first_task, uint64_t stamp)
{
	struct device *d = &g->devices[st->device];
	struct launch l = { .rt = RT_FLIP };
	uint32_t number = (uint32_t)(st->count >> 16) & 0xFFFF;

	track_record(g, t, st, &l, first_task | number << 16, stamp);
	st->device_end = device_slot(g, d, st, stamp);
	device_flip(g, d, st, number, first_task, st->device_end);
	st->flip_due = false;
	g->n.flips++;
}

/*
 * The next id of ST. When the 16 bits wrap, a flip is due; threads that raced for ids may have
 * put some tasks of the new batch in front of it, and the flip then names the first one behind.
 */
static void next_id(struct gen *g, struct thread *t, struct stream *st, struct task *task)
{
	if (g->o.chip == 15) {
		task->task = g->devices[st->device].next_task++;
		task->batch = 0;
		return;
	}
	uint64_t next = st->count + st->stride;
	bool wraps = next >> 16 != st->count >> 16;

	st->count = next;
	if (wraps) {
		st->flip_due = true;
		st->racers = g->o.threads > 1 ? (uint32_t)gen_range(g, 0, 3) : 0;
		if (st->racers == 0)
			flip(g, t, st, 0, t->now);
	} else if (st->flip_due && --st->racers == 0) {
		flip(g, t, st, (uint32_t)next & 0xFFFF, t->now);
	}
	task->task = (uint32_t)next & 0xFFFF;
	task->batch = (uint32_t)(next >> 16);
}

/* A full queue makes the caller wait, and the stream's lock keeps its submissions apart. */
static void wait_for_stream(struct gen *g, struct thread *t, const struct stream *st)
{
	uint64_t drained = host_at(g, &g->devices[st->device], st->device_end);
	uint64_t backlog = host_ticks(g, BACKLOG_NS);

	if (drained > backlog && t->now < drained - backlog)
		t->now = drained - backlog;
	if (t->now <= st->last_track)
		t->now = st->last_track + 1;
}

void submit(struct gen *g, struct thread *t, struct stream *st, const struct launch *l, struct task *task)
{
	struct span api = { 0 };
	uint64_t flips;

	advance(g, t, 100, 400);
	wait_for_stream(g, t, st);
	if (g->o.level >= 2)
		api = span_begin(g, t, LEVEL_RUNTIME, l->api, NULL);
	t->now++; /* what the runtime reports inside a call is stamped one tick after its begin */
	flips = g->n.flips;
	next_id(g, t, st, task);
	if (g->n.flips != flips)
		t->now++;
	task->stream = st;
	task->tid = t->tid;
	task->track = t->now;
	task->rt = l->rt;
	task->kernel = l->kernel;
	st->last_track = t->now;
	track_record(g, t, st, l, g->o.chip == 15 ? task->task : task->task | (task->batch & 0xFFFF) << 16,
		     t->now);
	advance(g, t, 800, 3000);
	if (g->o.level >= 2)
		span_end(g, t, &api, l->unaging);
}

static void settle(struct gen *g, struct stream *st)
{
	struct thread *t = &g->threads[0];
	uint64_t stamp = t->now > st->last_track ? t->now : st->last_track + 1;

	if (st->flip_due)
		flip(g, t, st, (uint32_t)(st->count + 1) & 0xFFFF, stamp);
}

void settle_flips(struct gen *g)
{
	for (uint32_t i = 0; i < g->o.devices; i++) {
		struct device *d = &g->devices[i];

		for (uint32_t s = 0; s < g->o.streams; s++)
			settle(g, &d->streams[s]);
		for (int p = 0; p < PLANES; p++)
			settle(g, &d->comm[p]);
		settle(g, &d->model);
	}
}

static void tensor_records(struct gen *g, struct thread *t, const struct node *n, uint64_t stamp)
{
	uint8_t r[ADDITIONAL_BYTES];

	for (uint32_t i = 0; i < n->tensors->count; i += TENSORS_A_RECORD) {
		uint32_t left = n->tensors->count - i;
		uint32_t here = left < TENSORS_A_RECORD ? left : TENSORS_A_RECORD;

		record_head(g, t, r, sizeof(r), LEVEL_NODE, 1, stamp, 232);
		put64(r + 24, n->name->hash);
		put32(r + 32, here);
		for (uint32_t k = 0; k < here; k++) {
			const struct tensor *ten = &n->tensors->t[i + k];
			uint8_t *p = r + 36 + 44 * k;

			put32(p, ten->kind);
			put32(p + 4, ten->format);
			put32(p + 8, ten->dtype);
			for (int dim = 0; dim < 8; dim++)
				put32(p + 12 + 4 * dim, ten->dims[dim]);
		}
		burst_put(g, t, n->unaging ? HF_TENSOR_STATIC : HF_TENSOR, r);
	}
}

void node_records(struct gen *g, struct thread *t, const struct node *n, uint64_t stamp)
{
	uint8_t r[COMPACT_BYTES];

	if (g->o.level == 0)
		return;
	record_head(g, t, r, sizeof(r), LEVEL_NODE, 0, stamp, 40);
	put64(r + 24, n->name->hash);
	put32(r + 32, n->ge_type);
	put64(r + 36, n->type->hash);
	put32(r + 44, n->blocks | n->ratio << 16);
	put32(r + 48, n->hf32);
	burst_put(g, t, n->unaging ? HF_NODE_STATIC : HF_NODE, r);
	if (n->attr) {
		record_head(g, t, r, sizeof(r), LEVEL_NODE, 9, stamp, 20);
		put64(r + 24, n->name->hash);
		put64(r + 36, n->type->hash);
		burst_put(g, t, HF_ATTR, r);
	}
	if (n->tensors)
		tensor_records(g, t, n, stamp);
}

void context_record(struct gen *g, struct thread *t, uint32_t level, const struct name *name,
		    const uint32_t *ids, uint32_t count, uint64_t stamp)
{
	uint8_t r[ADDITIONAL_BYTES];

	need(count <= CONTEXTS_A_RECORD, "context ids");
	record_head(g, t, r, sizeof(r), level, 4, stamp, 12 + 4 * count);
	put64(r + 24, name->hash);
	put32(r + 32, count);
	for (uint32_t i = 0; i < count; i++)
		put32(r + 36 + 4 * i, ids[i]);
	burst_put(g, t, HF_CONTEXT, r);
}
