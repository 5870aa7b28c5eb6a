/* SPDX-License-Identifier: BSD-2-Clause */
/* Compute kernels, and what operations share. */
#include "gen.h"

#include <stdlib.h>
#include <string.h>

#define PLAIN_KINDS 34 /* the first ones run on one kind of core */
#define KIND_AICPU 34
#define KIND_MIX 36
#define MIX_KINDS 3
#define KIND_FFTS 39
#define FFTS_OPS 4
#define FFTS_MAX_CONTEXTS 8

static const char *core_name(uint32_t ge_type)
{
	static const char *const names[] = {
		[GE_AI_CORE] = "AI_CORE", [GE_AI_CPU] = "AI_CPU",   [GE_AI_VECTOR_CORE] = "AI_VECTOR_CORE",
		[GE_MIX_AIC] = "MIX_AIC", [GE_MIX_AIV] = "MIX_AIV", [GE_FFTS_PLUS] = "FFTS_PLUS",
		[GE_HCCL] = "HCCL",
	};

	return names[ge_type];
}

static enum sub sub_of(uint32_t ge_type)
{
	switch (ge_type) {
	case GE_AI_CORE:
		return SUB_AIC;
	case GE_MIX_AIC:
		return SUB_MIX_AIC;
	case GE_MIX_AIV:
		return SUB_MIX_AIV;
	default:
		return SUB_AIV;
	}
}

struct task new_task(const char *cls, enum sqe sqe)
{
	return (struct task){
		.cls = cls, .sqe = sqe, .context = NO_CONTEXT, .model = NO_MODEL, .op_state = -1, .conn = -1
	};
}

/* Without node records (level 0) all that remains is the item of the NODE span. */
void describe(const struct gen *g, struct task *task, const struct node *n, const struct name *item)
{
	task->sub = sub_of(n->ge_type);
	task->pmu = n->ge_type != GE_AI_CPU && n->ge_type != GE_HCCL;
	task->blocks = n->blocks;
	task->mix_blocks = n->blocks * n->ratio;
	if (g->o.level == 0) {
		task->name = item;
		return;
	}
	task->name = n->name;
	task->type = n->type;
	task->core = core_name(n->ge_type);
	task->op_state = !n->unaging;
	task->hf32 = n->hf32;
	task->tensors = n->tensors;
}

struct stream *pick_stream(struct gen *g, struct thread *t, struct device *d)
{
	uint64_t own = (uint64_t)(t - g->threads), r = gen_rnd(g);

	if (g->o.flip && r % 4)
		return &d->streams[0];
	r >>= 8;
	if (g->o.threads < g->o.streams && r % 8)
		return &d->streams[(own + g->o.threads * (r >> 8)) % g->o.streams];
	return &d->streams[(r >> 8) % g->o.streams];
}

/* Mostly short, at times long. */
uint64_t kernel_ns(struct gen *g)
{
	uint64_t r = gen_rnd(g);

	return 1500 + (r >> 8) % 8000 + (r % 16 == 0 ? (r >> 32) % 60000 : 0);
}

void run_task(struct gen *g, struct device *d, struct stream *st, const struct task *task, uint64_t ns)
{
	uint64_t start = device_slot(g, d, st, task->track);

	st->device_end = start + device_ticks(d, ns);
	device_task(g, d, task, start, st->device_end);
}

static void make_tensors(struct gen *g, struct tensors *ten, uint64_t name_hash, uint64_t k)
{
	static const uint32_t formats[] = { 2, 0, 29, 3 }, dtypes[] = { 1, 0, 27, 3 };
	uint64_t seed = mix64(name_hash + (g->o.shapes ? k % 4 : 0));

	memset(ten, 0, sizeof(*ten));
	ten->count = g->o.shapes ? (uint32_t)(seed % 14) : 3;
	for (uint32_t i = 0; i < ten->count; i++) {
		uint64_t r = mix64(seed + i);
		struct tensor *t = &ten->t[i];
		uint32_t dims = g->o.shapes ? (uint32_t)(r % 9) : 2 + (uint32_t)(r % 3);

		t->kind = i + 1 == ten->count || (g->o.shapes && i + 2 >= ten->count);
		t->format = formats[r >> 8 & 3];
		t->dtype = dtypes[r >> 12 & 3];
		for (uint32_t dim = 0; dim < dims; dim++)
			t->dims[dim] = 1u << (mix64(r + dim) % 13);
	}
}

struct node kernel_node(struct gen *g, const struct name *name, uint64_t k, uint32_t kind,
			struct tensors *ten)
{
	const struct op_kind *op = &g->kinds[kind];
	struct node n = {
		.name = name, .type = &op->type_name, .ge_type = op->ge_type, .attr = true, .tensors = ten
	};

	n.hf32 = op->ge_type == GE_AI_CORE && n.name->hash % 3 == 0;
	n.blocks = (uint32_t)gen_range(g, 1, op->ge_type == GE_AI_VECTOR_CORE ? 48 : 24);
	if (op->ge_type == GE_MIX_AIC || op->ge_type == GE_MIX_AIV) {
		n.blocks = (uint32_t)gen_range(g, 1, 8);
		n.ratio = (uint32_t)gen_range(g, 1, 2);
	} else if (op->ge_type == GE_AI_CPU) {
		n.blocks = 1;
	} else if (op->ge_type == GE_FFTS_PLUS) {
		n.blocks = 0;
		n.hf32 = n.attr = false;
	}
	make_tensors(g, ten, n.name->hash, k);
	return n;
}

struct launch kernel_launch(const struct gen *g, const struct node *n, uint32_t kind)
{
	static const uint32_t rts[] = {
		[GE_AI_CORE] = RT_AICORE,  [GE_AI_CPU] = RT_AICPU,    [GE_AI_VECTOR_CORE] = RT_AIVEC,
		[GE_MIX_AIC] = RT_MIX_AIC, [GE_MIX_AIV] = RT_MIX_AIV, [GE_FFTS_PLUS] = RT_FFTS_PLUS,
	};

	return (struct launch){ .rt = rts[n->ge_type],
				.api = RT_API_LAUNCH,
				.unaging = n->unaging,
				.kernel = &g->kinds[kind].kernel_name,
				.blocks = n->blocks,
				.ratio = n->ratio };
}

/* A kernel launched past the graph engine: only its symbol is known. */
static void bare_kernel(struct gen *g, struct thread *t, struct device *d, uint32_t kind)
{
	struct task task = new_task("compute", g->kinds[kind].ge_type == GE_AI_CORE ? SQE_AIC : SQE_AIV);
	struct stream *st = pick_stream(g, t, d);
	struct span acl;
	struct node n = { .ge_type = g->kinds[kind].ge_type, .blocks = 8 };
	struct launch l = kernel_launch(g, &n, kind);

	acl = span_begin(g, t, LEVEL_ACL, ACL_LAUNCH, NULL);
	task.conn = (int64_t)acl.id;
	task.name = &g->kinds[kind].kernel_name;
	task.blocks = n.blocks;
	task.sub = sub_of(n.ge_type);
	task.pmu = true;
	submit(g, t, st, &l, &task);
	advance(g, t, 100, 300);
	span_end(g, t, &acl, false);
	run_task(g, d, st, &task, kernel_ns(g));
}

static void workspace_call(struct gen *g, struct thread *t, uint32_t kind)
{
	struct span s = span_begin(g, t, LEVEL_ACL, ACL_NN + 2 * kind, NULL);

	advance(g, t, 700, 1800);
	span_end(g, t, &s, false);
	advance(g, t, 150, 500);
}

/* One kernel in five also has its tiling reported, as a pair of events. */
static void tiling(struct gen *g, struct thread *t, const struct name *name, uint64_t k)
{
	struct span s;

	if (k % 5)
		return;
	s = span_begin(g, t, LEVEL_NODE, NODE_TILING, name);
	s.reserve = (uint32_t)(k % 1000);
	advance(g, t, 300, 900);
	span_end_events(g, t, &s);
	advance(g, t, 100, 200);
}

/* Ends a NODE span with its records stamped inside it, at times on its very end. */
static uint64_t node_stamp(struct gen *g, struct thread *t, uint64_t k)
{
	uint64_t stamp = advance(g, t, 100, 400);

	if (k % 4)
		advance(g, t, 50, 300);
	return stamp;
}

static uint32_t pick_kind(struct gen *g, uint64_t k)
{
	if (g->o.aicpu_every && k % g->o.aicpu_every == g->o.aicpu_every - 1)
		return KIND_AICPU + (uint32_t)(k & 1);
	return (uint32_t)(mix64(k) % PLAIN_KINDS);
}

static enum sqe sqe_of(uint32_t ge_type)
{
	switch (ge_type) {
	case GE_AI_CPU:
		return SQE_AICPU;
	case GE_AI_VECTOR_CORE:
		return SQE_AIV;
	default:
		return SQE_AIC;
	}
}

/* KIND has one device task: a queue entry, or for MIX kernels context 0 of an FFTS+ entry. */
static void one_kernel(struct gen *g, struct thread *t, struct device *d, uint64_t k, uint32_t kind)
{
	const bool mix = kind >= KIND_MIX;
	struct tensors ten;
	struct node n = kernel_node(g, kernel_name(g, k, kind), k, kind, &ten);
	struct launch l = kernel_launch(g, &n, kind);
	struct task task = new_task("compute", sqe_of(n.ge_type));
	struct stream *st = pick_stream(g, t, d);
	struct span acl, node;
	uint64_t stamp;

	workspace_call(g, t, kind);
	acl = span_begin(g, t, LEVEL_ACL, ACL_NN + 2 * kind + 1, NULL);
	advance(g, t, 200, 500);
	tiling(g, t, n.name, k);
	node = span_begin(g, t, LEVEL_NODE, NODE_LAUNCH, n.name);
	task.conn = (int64_t)node.id;
	describe(g, &task, &n, n.name);
	submit(g, t, st, &l, &task);
	stamp = node_stamp(g, t, k);
	node_records(g, t, &n, stamp);
	if (mix) {
		task.context = 0;
		context_record(g, t, LEVEL_NODE, n.name, &task.context, 1, stamp);
	}
	span_end(g, t, &node, false);
	advance(g, t, 100, 400);
	span_end(g, t, &acl, false);
	run_task(g, d, st, &task, kernel_ns(g));
	if (n.ge_type == GE_AI_CPU)
		device_aicpu(g, d, &task, st->device_end - device_ticks(d, 1400), st->device_end);
}

void op_kernel(struct gen *g, struct thread *t, struct device *d, uint64_t k)
{
	uint32_t kind = pick_kind(g, k);

	if (g->o.bare_every && k % g->o.bare_every == g->o.bare_every - 1 && kind < PLAIN_KINDS)
		bare_kernel(g, t, d, kind);
	else
		one_kernel(g, t, d, k, kind);
}

/* The contexts of one operator of an FFTS+ graph overlap each other and those of the others. */
static uint64_t ffts_contexts(struct gen *g, struct device *d, struct task *task, const uint32_t *ids,
			      uint32_t count, uint64_t start)
{
	uint64_t last = start;

	for (uint32_t c = 0; c < count; c++) {
		uint64_t from = start + device_ticks(d, gen_range(g, 0, 3000));
		uint64_t end = from + device_ticks(d, kernel_ns(g));

		task->context = ids[c];
		device_task(g, d, task, from, end);
		if (end > last)
			last = end;
	}
	return last;
}

static void ffts_graph(struct gen *g, struct thread *t, struct device *d, uint64_t k)
{
	struct tensors none, tens[FFTS_OPS];
	struct node graph = kernel_node(g, kernel_name(g, k, KIND_FFTS), k, KIND_FFTS, &none), ops[FFTS_OPS];
	struct launch l = kernel_launch(g, &graph, KIND_FFTS);
	struct task task = new_task("compute", SQE_AIC);
	struct stream *st = pick_stream(g, t, d);
	uint32_t ids[FFTS_OPS][FFTS_MAX_CONTEXTS], counts[FFTS_OPS], next = 0;
	struct span acl, node;
	uint64_t stamp, start, last;

	workspace_call(g, t, KIND_FFTS);
	acl = span_begin(g, t, LEVEL_ACL, ACL_NN + 2 * KIND_FFTS + 1, NULL);
	advance(g, t, 200, 500);
	node = span_begin(g, t, LEVEL_NODE, NODE_LAUNCH, graph.name);
	task.conn = (int64_t)node.id;
	submit(g, t, st, &l, &task);
	stamp = node_stamp(g, t, k);
	graph.tensors = NULL;
	node_records(g, t, &graph, stamp);
	for (uint32_t i = 0; i < FFTS_OPS; i++) {
		uint32_t kind = i == 3 ? KIND_MIX : (uint32_t)(mix64(k + i) % PLAIN_KINDS);

		ops[i] = kernel_node(g, &g->names[kind + OP_KINDS * i], k, kind, &tens[i]);
		node_records(g, t, &ops[i], stamp);
		counts[i] = (uint32_t)gen_range(g, 1, FFTS_MAX_CONTEXTS);
		for (uint32_t c = 0; c < counts[i]; c++)
			ids[i][c] = next++;
		context_record(g, t, LEVEL_NODE, ops[i].name, ids[i], counts[i], stamp);
	}
	span_end(g, t, &node, false);
	advance(g, t, 100, 400);
	span_end(g, t, &acl, false);

	start = device_slot(g, d, st, task.track);
	last = start;
	for (uint32_t i = 0; i < FFTS_OPS; i++) {
		uint64_t end;

		describe(g, &task, &ops[i], graph.name);
		end = ffts_contexts(g, d, &task, ids[i], counts[i], start + 1);
		if (end > last)
			last = end;
	}
	st->device_end = last + 1;
	if (g->o.ffts_parent) {
		struct task parent = new_task("device_only", SQE_AIC);

		parent.stream = st;
		parent.task = task.task;
		parent.batch = task.batch;
		device_task(g, d, &parent, start, st->device_end);
	}
}

void op_ffts(struct gen *g, struct thread *t, struct device *d, uint64_t k)
{
	if (k / g->o.ffts_every % 3 == 2)
		ffts_graph(g, t, d, k);
	else
		one_kernel(g, t, d, k, KIND_MIX + (uint32_t)(k % MIX_KINDS));
}
