/* SPDX-License-Identifier: BSD-2-Clause */
/* A graph that is loaded once and executed many times: one host task, many device tasks. */
#include "gen.h"

#include <stdlib.h>

#include "bytes.h"

#define MODEL_ID 7
#define MODEL_TASKS 8
#define LOAD_REQUEST 1
#define GRAPH_BYTES 256
#define LAST_PLAIN_KIND 33

struct model {
	struct task tasks[MODEL_TASKS];
	struct tensors tensors[MODEL_TASKS];
	struct name name;
};

/* One operator of the graph: everything about it is static. */
static void load_task(struct gen *g, struct thread *t, struct device *d, uint32_t i)
{
	struct model *m = g->model;
	uint32_t kind = (uint32_t)(mix64(i + 1000) % LAST_PLAIN_KIND);
	struct node n = kernel_node(g, &g->names[kind + OP_KINDS * (i % 5)], i, kind, &m->tensors[i]);
	struct task *task = &m->tasks[i];
	struct launch l;
	struct span node;
	uint64_t stamp;

	n.unaging = true;
	n.attr = false;
	l = kernel_launch(g, &n, kind);
	*task = new_task("compute", n.ge_type == GE_AI_CORE ? SQE_AIC : SQE_AIV);
	task->model = MODEL_ID;
	task->request = LOAD_REQUEST;
	node = span_begin(g, t, LEVEL_NODE, NODE_LAUNCH, n.name);
	task->conn = (int64_t)node.id;
	describe(g, task, &n, n.name);
	submit(g, t, &d->model, &l, task);
	stamp = advance(g, t, 100, 300);
	node_records(g, t, &n, stamp);
	advance(g, t, 100, 300);
	span_end(g, t, &node, true);
	advance(g, t, 100, 300);
}

void model_load(struct gen *g, struct thread *t)
{
	struct device *d = &g->devices[0];
	struct span acl, load;
	uint8_t r[GRAPH_BYTES];

	g->model = calloc(1, sizeof(*g->model));
	need(g->model != NULL, "model");
	g->model->name = add_name(g, NAME_MISC, 20, "resnet50_inference");
	acl = span_begin(g, t, LEVEL_ACL, ACL_MODEL_LOAD, NULL);
	advance(g, t, 500, 900);
	load = span_begin(g, t, LEVEL_MODEL, MODEL_LOAD, NULL);
	load.item = MODEL_ID;
	load.reserve = LOAD_REQUEST;
	advance(g, t, 500, 900);
	record_head(g, t, r, sizeof(r), LEVEL_MODEL, 0, t->now, 16);
	put64(r + 24, g->model->name.hash);
	put32(r + 32, 1);
	put32(r + 36, MODEL_ID);
	burst_put(g, t, HF_GRAPH, r);
	for (uint32_t i = 0; i < MODEL_TASKS; i++)
		load_task(g, t, d, i);
	span_end(g, t, &load, true);
	advance(g, t, 100, 300);
	span_end(g, t, &acl, false);
	advance(g, t, 1000, 2000);
}

static void truth_host_only(struct gen *g, const struct task *task)
{
	struct truth *tr = &g->truth;

	g->n.host_only++;
	truth_begin(tr, "host_only");
	truth_task_key(g, task);
	truth_uint(tr, "model", task->model);
	truth_uint(tr, "request", task->request);
	truth_str(tr, "host_type", api_name(g, LEVEL_RUNTIME, task->rt));
	truth_uint(tr, "tid", task->tid);
	truth_int(tr, "track_ns", host_wall(g, task->track));
	truth_int(tr, "conn", task->conn);
	truth_end(tr);
}

/* The parts of an execution, as step trace tags, and after which of its tasks they come. */
static void trace(struct gen *g, struct device *d, uint64_t run, uint32_t after)
{
	static const struct {
		uint32_t after, tag;
	} points[] = { { 0, 0 },     { 0, 20000 }, { 1, 20001 },       { 2, 2 },	  { 5, 10000 },
		       { 6, 10001 }, { 7, 3 },	   { MODEL_TASKS, 4 }, { MODEL_TASKS, 1 } };

	if (!g->o.step_trace)
		return;
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		if (points[i].after == after)
			device_step(g, d, points[i].tag, run, MODEL_ID, &d->model, 0, ++d->model.device_end);
}

void model_run(struct gen *g, struct thread *t, uint64_t run)
{
	struct device *d = &g->devices[0];
	struct stream *st = pick_stream(g, t, d);
	struct launch l = { .rt = RT_MODEL_EXECUTE, .api = RT_API_MODEL_EXECUTE, .model_id = MODEL_ID };
	struct task task = new_task("model", SQE_AIC);
	struct span acl, execute;

	acl = span_begin(g, t, LEVEL_ACL, ACL_MODEL_EXECUTE, NULL);
	advance(g, t, 300, 900);
	execute = span_begin(g, t, LEVEL_MODEL, MODEL_EXECUTE, NULL);
	execute.item = MODEL_ID;
	execute.reserve = (uint32_t)run;
	task.model = MODEL_ID;
	task.request = (uint32_t)run;
	task.conn = (int64_t)execute.id;
	submit(g, t, st, &l, &task);
	truth_host_only(g, &task);
	d->model.device_end = device_slot(g, d, &d->model, task.track);
	for (uint32_t i = 0; i < MODEL_TASKS; i++) {
		uint64_t start;

		trace(g, d, run, i);
		start = d->model.device_end + 1 + device_ticks(d, gen_range(g, 0, 500));
		d->model.device_end = start + device_ticks(d, kernel_ns(g));
		device_task(g, d, &g->model->tasks[i], start, d->model.device_end);
	}
	trace(g, d, run, MODEL_TASKS);
	/* The call waits for the graph. */
	if (t->now < host_at(g, d, d->model.device_end))
		t->now = host_at(g, d, d->model.device_end);
	advance(g, t, 500, 900);
	span_end(g, t, &execute, false);
	advance(g, t, 100, 300);
	span_end(g, t, &acl, false);
}

void model_free(struct gen *g)
{
	free(g->model);
}
