/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_view.json or msprof_*.json as a model (outputs 2). Counters, flows, lanes that follow from others
 * (overlap, parts of collectives) and those of the scheduler are not read.
 */
#include "import/import.h"

#include "import/trace/import_trace_events.h"
#include "import/trace/import_trace_rank.h"
#include "import/trace/import_trace_tables.h"
#include "import/trace/import_trace_types.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct trace_import {
	struct nps_model *m;
	struct nps_trace_events events;
	struct nps_map chains; /* text of a stack -> its id in `frame` */
	uint32_t nchains, ncollectives;
	uint64_t foreign; /* events of layers that are not read */
	uint64_t timeless; /* events whose start was not recorded */
};

/* The process of the job that ROW is of: the vendor's layers of the host have numbers of their own. */
static uint64_t job_of(const struct trace_import *in, const struct nps_trace_row *row)
{
	uint32_t at = nps_map__get(&in->events.processes, row->pid);

	if (in->events.app)
		return in->events.app;
	return at != NPS_NONE && NPS_AT(&in->events.process, struct nps_trace_process, at).vendor
		       ? row->pid >> 10
		       : row->pid;
}

static uint64_t gtid_of(const struct trace_import *in, const struct nps_trace_row *row, bool host_layer)
{
	uint64_t pid = host_layer ? job_of(in, row) : row->pid;

	return (pid > UINT32_MAX ? nps_hash2(pid, 0) : pid) << 32 | (row->tid & UINT32_MAX);
}

/* LEN bytes of TEXT as a text of its own: texts move while one is added. */
static uint32_t text_add_part(struct nps_model *m, const char *text, size_t len)
{
	char copy[4096];

	len = NPS_MIN(len, sizeof(copy));
	memcpy(copy, text, len);
	return nps_strings__add(m->strings, copy, len);
}

/* The id of the call chain that TEXT holds line by line, innermost first. */
static int add_chain(struct trace_import *in, uint32_t text, int64_t *id)
{
	struct nps_frame_table *t = &in->m->frame;
	uint32_t known = nps_map__get(&in->chains, text), depth = 0;
	size_t at = 0, row;
	int err;

	if (known != NPS_NONE) {
		*id = known;
		return 0;
	}
	*id = in->nchains++;
	err = nps_map__put(&in->chains, text, *id);
	while (!err) {
		const char *line = nps_model__text(in->m, text) + at;
		size_t len = strcspn(line, ";\r\n"), skip = len + strspn(line + len, ";\r\n");
		uint32_t stack = len ? text_add_part(in->m, line, len) : NPS_NONE;

		if (!skip)
			break;
		at += skip;
		if (!len)
			continue;
		err = stack == NPS_NONE ? -ENOMEM : nps_table__add(&t->t, &row);
		if (err)
			break;
		t->id[row] = *id;
		t->stack[row] = stack;
		t->depth[row] = depth++;
	}
	return err;
}

static int slice_add_torch(struct trace_import *in, const struct nps_trace_row *row, enum nps_api_type type)
{
	struct nps_torch_table *t = &in->m->torch;
	int64_t chain = NPS_NULL;
	int err = row->stack == NPS_NONE ? 0 : add_chain(in, row->stack, &chain);
	size_t i;

	if (err)
		return err;
	err = nps_table__add(&t->t, &i);
	if (err)
		return err;
	t->start[i] = row->order.high;
	t->end[i] = ~row->order.low;
	t->gtid[i] = gtid_of(in, row, false);
	t->connection[i] = NPS_NULL;
	t->name[i] = row->name;
	t->sequence[i] = row->sequence < 0 ? NPS_NULL : row->sequence;
	t->forward_tid[i] = row->forward ? (int64_t)row->forward : NPS_NULL;
	t->input_types[i] = row->types;
	t->input_shapes[i] = row->shapes;
	t->callchain[i] = chain;
	t->type[i] = type;
	t->correlation[i] = row->correlation;
	t->modules[i] = t->extra[i] = NPS_NONE;
	t->python_id[i] = t->python_parent[i] = t->python_module[i] = NPS_NULL;
	return 0;
}

/* Steps are operators, too. */
static int slice_add_op(struct trace_import *in, const struct nps_trace_row *row)
{
	struct nps_step_table *t = &in->m->step;
	unsigned long long number;
	char c;
	bool step = sscanf(nps_model__text(in->m, row->name), "ProfilerStep#%llu%c", &number, &c) == 1 &&
		    number <= INT64_MAX;
	int err = slice_add_torch(in, row, NPS_API_TORCH_OP);
	size_t i;

	if (err || !step)
		return err;
	err = nps_table__add(&t->t, &i);
	if (err)
		return err;
	t->id[i] = number;
	t->start[i] = row->order.high;
	t->end[i] = ~row->order.low;
	return 0;
}

static int slice_add_api(struct trace_import *in, const struct nps_trace_row *row)
{
	static const struct {
		const char *layer;
		enum nps_api_type type;
	} types[] = { { "AscendCL@", NPS_API_ACL },	  { "Model@", NPS_API_MODEL },
		      { "Node@", NPS_API_NODE },	  { "Hccl@", NPS_API_COMM },
		      { "Communication@", NPS_API_COMM }, { "Runtime@", NPS_API_RUNTIME } };
	const char *name = nps_model__text(in->m, row->name);
	struct nps_api_table *t = &in->m->api;
	enum nps_api_type type = NPS_API_ACL;
	size_t i, skip = 0;
	uint32_t text;
	int err;

	for (size_t k = 0; k < NPS_ARRAY_SIZE(types); k++)
		if (!strncmp(name, types[k].layer, strlen(types[k].layer))) {
			type = types[k].type;
			skip = strlen(types[k].layer);
		}
	text = text_add_part(in->m, name + skip, strlen(name + skip));
	err = text == NPS_NONE ? -ENOMEM : nps_table__add(&t->t, &i);
	if (err)
		return err;
	t->start[i] = row->order.high;
	t->end[i] = ~row->order.low;
	t->type[i] = type;
	t->gtid[i] = gtid_of(in, row, true);
	t->connection[i] = row->connection;
	t->name[i] = text;
	t->item[i] = type == NPS_API_NODE ? row->item : NPS_NONE;
	t->mode[i] = NPS_NONE;
	return 0;
}

static enum nps_task_class slice_class(struct nps_model *m, const struct nps_trace_row *row)
{
	const char *type = nps_model__text(m, row->type);
	bool known;
	enum nps_task_class class = nps_trace__task_class(type, nps_model__text(m, row->name), &known);

	nps_model__lost(m, !known, "tasks of type %.64s, which is not known: not counted as kernels", type);
	return class;
}

static int add_compute(struct nps_model *m, const struct nps_trace_row *row, uint32_t task)
{
	struct nps_compute_table *t = &m->compute;
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->task[i] = task;
	t->name[i] = row->name;
	t->core[i] = row->type;
	t->type[i] = NPS_NONE;
	t->input_formats[i] = t->input_types[i] = t->input_shapes[i] = NPS_NONE;
	t->output_formats[i] = t->output_types[i] = t->output_shapes[i] = NPS_NONE;
	t->attributes[i] = t->state[i] = t->hf32[i] = t->grid[i] = t->block_dim[i] = NPS_NONE;
	return 0;
}

static int add_memcpy(struct nps_model *m, const struct nps_trace_row *row, uint32_t task)
{
	size_t i;
	int err = nps_table__add(&m->memcpy.t, &i);

	if (err)
		return err;
	m->memcpy.task[i] = task;
	m->memcpy.size[i] = row->size;
	m->memcpy.operation[i] = 65535; /* other */
	return 0;
}

/* The device: in the vendor's pids; of a trace that does not have it, the first one. */
static uint32_t process_device(const struct nps_trace_process *p)
{
	return p->device != NPS_NONE ? p->device : p->vendor ? p->pid & 31 : 0;
}

static int add_bounds(struct trace_import *in, const struct nps_trace_row *row, uint32_t task)
{
	const struct nps_trace_limits *limits =
		&NPS_AT(&in->events.limits, struct nps_trace_limits, row->limits);
	struct nps_bounds_table *t = &in->m->bounds;
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->task[i] = task;
	t->start_low[i] = limits->start_low;
	t->start_high[i] = limits->start_high;
	t->end_low[i] = limits->end_low;
	t->end_high[i] = limits->end_high;
	return 0;
}

static int slice_add_task(struct trace_import *in, const struct nps_trace_row *row,
			  const struct nps_trace_process *p)
{
	struct nps_model *m = in->m;
	struct nps_task_table *t = &m->task;
	enum nps_task_class class = slice_class(m, row);
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->start[i] = row->order.high;
	t->end[i] = ~row->order.low;
	t->device[i] = process_device(p);
	t->connection[i] = row->connection;
	t->id[i] = i;
	t->pid[i] = in->events.app ? in->events.app : p->vendor ? p->pid >> 10 : p->pid;
	t->type[i] = t->hw_type[i] = row->type;
	t->context[i] = row->subtask;
	t->stream[i] = row->stream == NPS_NO_ID ? (uint32_t)row->tid : row->stream;
	t->task[i] = row->task;
	t->model[i] = row->model;
	t->batch[i] = row->batch;
	t->name[i] = row->name;
	t->kernel[i] = NPS_NONE;
	t->step[i] = NPS_NONE;
	t->class[i] = class;
	t->source[i] = row->source;
	if (row->limits != NPS_NONE)
		err = add_bounds(in, row, i);
	if (err)
		return err;
	return class == NPS_CLASS_COMPUTE  ? add_compute(m, row, i)
	       : class == NPS_CLASS_MEMCPY ? add_memcpy(m, row, i)
					   : 0;
}

/* hcom_allReduce_ of hcom_allReduce__586_0_1. */
static uint32_t collective_type(struct nps_model *m, uint32_t name)
{
	const char *text = nps_model__text(m, name), *mark = strstr(text, "__");

	return mark ? text_add_part(m, text, mark - text + 1) : name;
}

/* The lane's name without the word that all have. */
static uint32_t slice_group(struct trace_import *in, const struct nps_trace_row *row)
{
	static const char word[] = " Communication";
	uint32_t lane = nps_map__get(&in->events.threads, nps_hash2(row->pid, row->tid));
	const char *text = nps_model__text(in->m, lane);
	size_t len = strlen(text), cut = sizeof(word) - 1;

	if (len <= cut || strcmp(text + len - cut, word))
		return lane;
	return text_add_part(in->m, text, len - cut);
}

static int slice_add_collective(struct trace_import *in, const struct nps_trace_row *row,
				const struct nps_trace_process *p)
{
	struct nps_comm_op_table *t = &in->m->comm_op;
	uint32_t type = collective_type(in->m, row->name), group = slice_group(in, row);
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->name[i] = row->name;
	t->start[i] = row->order.high;
	t->end[i] = ~row->order.low;
	t->connection[i] = row->connection;
	t->group[i] = group;
	t->id[i] = in->ncollectives++;
	t->relay[i] = t->retry[i] = NPS_NULL;
	t->dtype[i] = 65534;
	t->algorithm[i] = row->algorithm;
	t->count[i] = row->size;
	t->type[i] = type;
	t->device[i] = process_device(p);
	t->ranks[i] = NPS_NULL;
	t->model[i] = row->model;
	t->step[i] = NPS_NONE;
	t->tasks[i] = row->limits != NPS_NONE; /* else they are not counted */
	t->measured[i] = 0;
	return 0;
}

static int add_os_call(struct trace_import *in, const struct nps_trace_row *row)
{
	return nps_osrt_table__add(&in->m->osrt, &(struct nps_osrt_row){ .name = row->name,
									 .gtid = gtid_of(in, row, true),
									 .start = row->order.high,
									 .end = ~row->order.low });
}

static int add_gc(struct trace_import *in, const struct nps_trace_row *row)
{
	return nps_gc_table__add(&in->m->gc, &(struct nps_gc_row){ .start = row->order.high,
								   .end = ~row->order.low,
								   .gtid = gtid_of(in, row, true) });
}

/*
 * An event without a category has the layer of its process. Of a process without a name, as in a slice of a
 * trace or in what a simulator of operators wrote, tasks are known by their type.
 */
static int add_rest(struct trace_import *in, const struct nps_trace_row *row)
{
	static const struct nps_trace_process nobody = { .device = NPS_NONE };
	uint32_t at = nps_map__get(&in->events.processes, row->pid);
	const struct nps_trace_process *p =
		at == NPS_NONE ? &nobody : &NPS_AT(&in->events.process, struct nps_trace_process, at);

	if (row->op)
		return slice_add_op(in, row);
	switch (p->layer) {
	case NPS_TRACED_PYTHON:
		return slice_add_op(in, row);
	case NPS_TRACED_GC:
		return add_gc(in, row);
	case NPS_TRACED_CANN:
		return slice_add_api(in, row);
	case NPS_TRACED_OS:
		return add_os_call(in, row);
	case NPS_TRACED_HARDWARE:
		return slice_add_task(in, row, p);
	case NPS_TRACED_COMMUNICATION:
		return row->type == NPS_NONE ? slice_add_collective(in, row, p) : 0;
	case NPS_TRACED_LEFT_OUT:
		break;
	case NPS_TRACED_UNKNOWN:
		if (row->type != NPS_NONE && row->task != NPS_NO_ID)
			return slice_add_task(in, row, p);
		in->foreign++;
		break;
	case NPS_TRACED_FOREIGN: /* that of user's ranges has the name of the application */
		in->foreign++;
		break;
	}
	return 0;
}

/* The next row by start. Among times since 1970 a start of 0 is one that was not recorded. */
static const struct nps_trace_row *next_row(struct trace_import *in, struct nps_ext_sort *from)
{
	const struct nps_trace_row *row;

	while ((row = nps_ext_sort__next(from)) && !row->order.high && in->events.latest > NPS_TRACE_LONGEST)
		in->timeless++;
	return row;
}

/* All enqueues come before all dequeues in the table. */
static int fill_queue(struct trace_import *in)
{
	struct nps_ext_sort *from = &in->events.sections[NPS_TRACE_QUEUE], dequeues;
	int err = nps_ext_sort__finish(from);
	const struct nps_trace_row *row;

	nps_ext_sort__init(&dequeues, in->m->tmpfd, sizeof(struct nps_trace_row));
	while (!err && (row = next_row(in, from))) {
		struct nps_trace_row *later;

		if (strncmp(nps_model__text(in->m, row->name), "Dequeue", 7)) {
			err = slice_add_torch(in, row, NPS_API_TORCH_QUEUE);
			continue;
		}
		later = nps_ext_sort__add(&dequeues);
		if (later)
			*later = *row;
		err = dequeues.err;
	}
	err = err ? err : from->err;
	if (err)
		goto out;
	err = nps_ext_sort__finish(&dequeues);
	while (!err && (row = nps_ext_sort__next(&dequeues)))
		err = slice_add_torch(in, row, NPS_API_TORCH_QUEUE);
	err = err ? err : dequeues.err;
out:
	nps_ext_sort__free(&dequeues);
	nps_ext_sort__free(from);
	return err;
}

static int fill_section(struct trace_import *in, enum nps_trace_section section)
{
	struct nps_ext_sort *from = &in->events.sections[section];
	int err = nps_ext_sort__finish(from);
	const struct nps_trace_row *row;

	while (!err && (row = next_row(in, from))) {
		/* Times may count from the first event, which is at 0. */
		in->m->start = NPS_MIN(in->m->start, row->order.high);
		nps_model__cover(in->m, row->order.high, ~row->order.low);
		err = section == NPS_TRACE_FRAMES ? slice_add_torch(in, row, NPS_API_PYTHON)
						  : add_rest(in, row);
	}
	err = err ? err : from->err;
	nps_ext_sort__free(from);
	return err;
}

/* Reads the events of PATH, then fills the model's tables from them and from the files beside it. */
static int trace_fill(struct trace_import *in, const char *path)
{
	int err = nps_trace_events__read(&in->events, in->m, path);

	if (err)
		return err;
	err = fill_queue(in);
	if (err)
		return err;
	err = fill_section(in, NPS_TRACE_FRAMES);
	if (err)
		return err;
	err = fill_section(in, NPS_TRACE_REST);
	if (err)
		return err;
	return nps_trace__import_tables(in->m, path);
}

int nps_import__trace(struct nps_model *model, const char *path)
{
	struct trace_import in = { .m = model };
	int err = trace_fill(&in, path);

	nps_model__lost(model, in.timeless, "events whose start is 0, which is no time");
	nps_model__lost(model, in.foreign, "events of processes that no table shows");
	model->pid = in.events.app;
	nps_trace_events__free(&in.events);
	nps_map__free(&in.chains);
	nps_trace__find_rank(model, path);
	if (err == -EILSEQ)
		nps_msg_failure("cannot read %s: it is no trace: name a trace_view.json or msprof_*.json",
				path);
	else if (err)
		nps_msg_failure("cannot read %s: %s", path, strerror(-err));
	return err;
}
