/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_view.json or msprof_*.json as a model (outputs 2). Events come in any order and the type of their
 * process may come last, so they are sorted outside of memory first. Counters, flows, lanes that follow
 * from others (overlap, parts of collectives) and those of the scheduler are not read.
 */
#include "import.h"

#include "base/ext_sort.h"
#include "base/input_file.h"
#include "base/progress.h"
#include "import_trace_rank.h"
#include "import_trace_read.h"
#include "import_trace_tables.h"
#include "import_trace_types.h"
#include "trace_slices.h"

#include <errno.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES 65536 /* processes and threads whose names are kept */
#define PROGRESS (1U << 12) /* events between two looks at what was read */
/* No event of a capture is longer: the end of one that is was never written. */
#define LONGEST (30ULL * 86400 * 1000000000)
#define FIRST_NARROW 0xc0000000U /* numbers of ids that are wider than the columns that hold them */

enum layer { UNKNOWN, PYTHON, GC, CANN, OS, HARDWARE, COMMUNICATION, LEFT_OUT, FOREIGN };
enum section { QUEUE, FRAMES, REST, SECTIONS };

struct process {
	uint64_t pid;
	enum layer layer;
	uint32_t device; /* from its label, NPS_NONE unknown */
	bool vendor; /* its number holds job and device (outputs 2.2): its sort index matches */
};

struct row {
	struct nps_sort_key order; /* start, ~end */
	uint64_t pid, tid;
	int64_t sequence, correlation, size;
	uint32_t name, type, connection, stream, task, batch, subtask, model;
	uint32_t shapes, types, stack, item, algorithm;
	uint32_t forward;
	uint32_t limits; /* row of `limits`, NPS_NONE: it was measured */
	uint8_t source; /* enum nps_time_source */
	bool op; /* by its category */
};

/* Bounds of the begin and the end of a task that was not measured; UINT64_MAX: open. */
struct limits {
	uint64_t start_low, start_high, end_low, end_high;
};

/* An event that has begun, above those that its thread had begun before. */
struct begun {
	struct row row;
	uint32_t below; /* NPS_NONE: none */
	uint8_t section;
};

struct import {
	struct nps_model *m;
	struct nps_ext_sort sections[SECTIONS];
	struct nps_map processes; /* pid -> row of process */
	struct nps_vec process; /* struct process */
	struct nps_map threads; /* hash of pid and tid -> text: name */
	struct nps_map chains; /* text of a stack -> its id in `frame` */
	struct nps_vec limits; /* struct limits */
	struct nps_vec begun; /* struct begun */
	struct nps_map top; /* hash of pid and tid -> its innermost event that has begun */
	uint32_t unused; /* chain of rows of `begun` */
	struct nps_map narrow; /* hash of an id of more than 32 bits -> its number */
	uint32_t nchains, ncollectives, nnarrow;
	uint64_t nbegun; /* that have not ended */
	uint64_t foreign; /* events of layers that are not read */
	uint64_t endless; /* events that last longer than any capture, and ends without a begin */
	uint64_t timeless; /* events whose start was not recorded */
	uint64_t latest; /* start, ns */
	uint64_t app; /* pid of the Python process, 0 none */
};

/* --- reading -------------------------------------------------------------------------------------- */

static uint32_t intern(struct import *in, const struct nps_trace_text *text, int *err)
{
	uint32_t id;

	if (!text->at)
		return NPS_NONE;
	id = nps_strings__add(in->m->strings, text->at, text->len);
	if (id == NPS_NONE)
		*err = -ENOMEM;
	return id;
}

/* Process and thread ids are numbers; texts that are none get a number of their own. */
static uint64_t number_or_hash(const struct nps_trace_text *text)
{
	uint64_t value;

	if (nps_trace__u64(text, &value))
		return value;
	return text->at ? nps_hash_bytes(text->at, text->len) & UINT32_MAX : 0;
}

static uint32_t u32_or(const struct nps_trace_text *text, uint32_t otherwise)
{
	uint64_t value;

	return nps_trace__u64(text, &value) && value <= UINT32_MAX ? value : otherwise;
}

/* ID, or if it does not fit 32 bits a number that no other one has. */
static uint32_t narrow(struct import *in, uint64_t id, int *err)
{
	uint64_t key = nps_hash2(id, id >> 32);
	uint32_t number;

	if (id <= UINT32_MAX)
		return id;
	number = nps_map__get(&in->narrow, key);
	if (number != NPS_NONE)
		return number;
	if (nps_map__put(&in->narrow, key, FIRST_NARROW + in->nnarrow))
		*err = -ENOMEM;
	return FIRST_NARROW + in->nnarrow++ % (UINT32_MAX - FIRST_NARROW);
}

static uint32_t id_or_none(struct import *in, const struct nps_trace_text *text, int *err)
{
	uint64_t value;

	return nps_trace__u64(text, &value) ? narrow(in, value, err) : NPS_NO_ID;
}

static int64_t i64_or_null(const struct nps_trace_text *text)
{
	int64_t value;

	return nps_trace__i64(text, &value) ? value : NPS_NULL;
}

static bool is(const struct nps_trace_text *text, const char *what)
{
	return text->at && text->len == strlen(what) && !memcmp(text->at, what, text->len);
}

static bool begins(const struct nps_trace_text *text, const char *with)
{
	return text->at && text->len >= strlen(with) && !memcmp(text->at, with, strlen(with));
}

/* The process PID in *P, NULL if there are too many. 0 or -ENOMEM. */
static int find_process(struct import *in, uint64_t pid, struct process **p)
{
	uint32_t row = nps_map__get(&in->processes, pid);

	*p = NULL;
	if (row == NPS_NONE && in->process.len == NAMES)
		return 0;
	if (row == NPS_NONE) {
		*p = nps_vec__push(&in->process);
		if (!*p || nps_map__put(&in->processes, pid, in->process.len - 1))
			return -ENOMEM;
		**p = (struct process){ .pid = pid, .device = NPS_NONE };
		return 0;
	}
	*p = &NPS_AT(&in->process, struct process, row);
	return 0;
}

static enum layer layer_of(const struct nps_trace_text *name)
{
	static const struct {
		const char *name;
		enum layer layer;
	} layers[] = {
		{ "Python", PYTHON },
		{ "Python GC", GC },
		{ "CANN", CANN },
		{ "OS Runtime API", OS },
		{ "Ascend Hardware", HARDWARE },
		{ "HCCL", COMMUNICATION },
		{ "Communication", COMMUNICATION },
		{ "Overlap Analysis", LEFT_OUT },
		{ "Process Scheduling", LEFT_OUT },
		{ "CPU Scheduling", LEFT_OUT },
		{ "CCU", LEFT_OUT },
		{ "DPU", LEFT_OUT },
		{ "Biu Perf", LEFT_OUT },
		{ "Block Detail", LEFT_OUT },
		{ "Fusion Task", LEFT_OUT },
	};

	for (size_t i = 0; i < NPS_ARRAY_SIZE(layers); i++)
		if (is(name, layers[i].name))
			return layers[i].layer;
	return begins(name, "Step Trace") ? LEFT_OUT : FOREIGN;
}

static int read_metadata(struct import *in, const struct nps_trace_event *event)
{
	const struct nps_trace_text *name = &event->args[NPS_TRACE_NAME];
	uint64_t pid = number_or_hash(&event->pid), tid = number_or_hash(&event->tid), device;
	struct nps_trace_text rest = event->args[NPS_TRACE_LABELS];
	struct process *p;
	int err = find_process(in, pid, &p);

	if (err || !p)
		return err;
	if (is(&event->name, "process_name") && name->at) {
		p->layer = layer_of(name);
		if (p->layer == PYTHON && !in->app)
			in->app = pid;
	} else if (is(&event->name, "process_labels") && begins(&rest, "NPU ")) {
		rest.at += 4;
		rest.len -= 4;
		if (nps_trace__u64(&rest, &device) && device <= UINT16_MAX)
			p->device = device;
	} else if (is(&event->name, "process_sort_index")) {
		p->vendor = pid >> 10 && nps_trace__u64(&event->args[NPS_TRACE_SORT_INDEX], &device) &&
			    device == (pid >> 5 & 31);
	} else if (is(&event->name, "thread_name") && name->at && in->threads.len < NAMES) {
		uint32_t text = intern(in, name, &err);

		if (!err)
			err = nps_map__put(&in->threads, nps_hash2(pid, narrow(in, tid, &err)), text);
	}
	return err;
}

static enum section section_of(const struct nps_trace_event *event)
{
	return is(&event->cat, "enqueue") || is(&event->cat, "dequeue") ? QUEUE
	       : is(&event->cat, "python_function")			? FRAMES
									: REST;
}

/* A task without measured times has the least length in npuscope's traces, for viewers: it means none. */
static int read_source(struct import *in, const struct nps_trace_event *event, struct row *row)
{
	const struct nps_trace_text *args = event->args;
	struct limits *limits;

	row->limits = NPS_NONE;
	row->source = is(&args[NPS_TRACE_SOURCE], "device log") ? NPS_TIME_DEVICE_LOG : NPS_TIME_IMPORTED;
	if (!is(&args[NPS_TRACE_SOURCE], "host bounds"))
		return 0;
	limits = nps_vec__push(&in->limits);
	if (!limits || in->limits.len >= NPS_NONE)
		return -ENOMEM;
	*limits = (struct limits){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	nps_trace__ns(&args[NPS_TRACE_START_LOW], &limits->start_low);
	nps_trace__ns(&args[NPS_TRACE_START_HIGH], &limits->start_high);
	nps_trace__ns(&args[NPS_TRACE_END_LOW], &limits->end_low);
	nps_trace__ns(&args[NPS_TRACE_END_HIGH], &limits->end_high);
	row->limits = in->limits.len - 1;
	row->source = NPS_TIME_HOST_BOUNDS;
	row->order.low = ~event->start;
	return 0;
}

static int read_row(struct import *in, const struct nps_trace_event *event, enum section section,
		    struct row *row)
{
	const struct nps_trace_text *args = event->args;
	int err = 0;

	*row = (struct row){
		.order = { event->start, ~event->end },
		.pid = number_or_hash(&event->pid),
		.tid = narrow(in, number_or_hash(&event->tid), &err),
		.sequence = i64_or_null(&args[NPS_TRACE_SEQUENCE]),
		.correlation = i64_or_null(&args[NPS_TRACE_CORRELATION]),
		.size = i64_or_null(&args[section == REST && args[NPS_TRACE_COUNT].at ? NPS_TRACE_COUNT
										      : NPS_TRACE_SIZE]),
		.name = intern(in, &event->name, &err),
		.type = intern(in,
			       &args[args[NPS_TRACE_SUBTYPE].at ? NPS_TRACE_SUBTYPE : NPS_TRACE_TASK_TYPE],
			       &err),
		.connection = id_or_none(in, &args[NPS_TRACE_CONNECTION], &err),
		.stream = u32_or(&args[NPS_TRACE_STREAM], NPS_NO_ID),
		.task = u32_or(&args[NPS_TRACE_TASK], NPS_NO_ID),
		.batch = u32_or(&args[NPS_TRACE_BATCH], 0),
		.subtask = u32_or(&args[NPS_TRACE_SUBTASK], NPS_NO_ID),
		.model = u32_or(&args[NPS_TRACE_MODEL], NPS_NO_ID),
		.shapes = intern(in, &args[NPS_TRACE_SHAPES], &err),
		.types = intern(in, &args[NPS_TRACE_TYPES], &err),
		.stack = intern(in, &args[NPS_TRACE_STACK], &err),
		.item = intern(in, &args[NPS_TRACE_ITEM], &err),
		.algorithm = intern(in, &args[NPS_TRACE_ALGORITHM], &err),
		.forward = u32_or(&args[NPS_TRACE_FORWARD], 0),
		.op = is(&event->cat, "cpu_op") || is(&event->cat, "user_annotation"),
	};
	return err ? err : read_source(in, event, row);
}

static int keep_row(struct import *in, enum section section, const struct row *row)
{
	struct row *to;

	if (~row->order.low - row->order.high > LONGEST) {
		in->endless++;
		return 0;
	}
	in->latest = NPS_MAX(in->latest, row->order.high);
	to = nps_ext_sort__add(&in->sections[section]);
	if (!to)
		return in->sections[section].err;
	*to = *row;
	return 0;
}

static int read_span(struct import *in, const struct nps_trace_event *event)
{
	enum section section = section_of(event);
	struct row row;
	int err = read_row(in, event, section, &row);

	return err ? err : keep_row(in, section, &row);
}

static uint64_t thread_key(const struct nps_trace_event *event)
{
	return nps_hash2(number_or_hash(&event->pid), number_or_hash(&event->tid));
}

/* Phase B: what EVENT begins is nested in what its thread had begun before. */
static int read_begin(struct import *in, const struct nps_trace_event *event)
{
	uint64_t thread = thread_key(event);
	uint32_t at = in->unused;
	struct begun *begun;
	int err;

	if (at == NPS_NONE && (in->begun.len >= NPS_NONE - 1 || !nps_vec__push(&in->begun)))
		return -ENOMEM;
	at = at == NPS_NONE ? in->begun.len - 1 : at;
	begun = &NPS_AT(&in->begun, struct begun, at);
	if (at == in->unused)
		in->unused = begun->below;
	begun->section = section_of(event);
	begun->below = nps_map__get(&in->top, thread);
	err = read_row(in, event, begun->section, &begun->row);
	in->nbegun++;
	return err ? err : nps_map__put(&in->top, thread, at);
}

/* E: of what its thread began last. */
static int read_end(struct import *in, const struct nps_trace_event *event)
{
	uint64_t thread = thread_key(event);
	uint32_t at = nps_map__get(&in->top, thread);
	struct begun *begun;
	int err;

	if (at == NPS_NONE) {
		in->endless++;
		return 0;
	}
	begun = &NPS_AT(&in->begun, struct begun, at);
	err = nps_map__put(&in->top, thread, begun->below);
	begun->row.order.low = ~NPS_MAX(event->start, begun->row.order.high);
	if (!err)
		err = keep_row(in, begun->section, &begun->row);
	begun->below = in->unused;
	in->unused = at;
	in->nbegun--;
	return err;
}

static int read_event(struct import *in, const struct nps_trace_event *event)
{
	switch (event->phase) {
	case 'X':
		return event->timed ? read_span(in, event) : 0;
	case 'B':
		return read_begin(in, event);
	case 'E':
		return read_end(in, event);
	case 'M':
		return read_metadata(in, event);
	}
	return 0;
}

static int read_file(struct import *in, const char *path)
{
	struct nps_trace_reader reader;
	struct nps_trace_event event;
	uint64_t shown = 0, n = 0;
	int err = nps_trace__open(&reader, path);

	if (err)
		return err;
	nps_progress__stage(in->m->progress, "reading", 0, NULL);
	while ((err = nps_trace__next(&reader, &event)) > 0) {
		err = read_event(in, &event);
		if (err)
			break;
		if (n++ % PROGRESS)
			continue;
		nps_progress__add(in->m->progress, reader.read - shown);
		shown = reader.read;
	}
	nps_model__lost(in->m, reader.damaged, "%s: events that are damaged", path);
	nps_model__lost(in->m, reader.cut, "%s: ends early", path);
	nps_model__lost(in->m, reader.behind, "%s: bytes behind the list of events", path);
	nps_trace__close(&reader);
	return err;
}

/* All slices of the trace, of which PATH is one or the only one. */
static int read_events(struct import *in, const char *path)
{
	struct nps_vec slices;
	int err;

	nps_vec__init(&slices, in->m->tmpfd, sizeof(struct nps_trace_slice));
	err = nps_trace_slices__find(&slices, path);
	for (size_t i = 0; !err && i < slices.len; i++)
		err = read_file(in, NPS_AT(&slices, struct nps_trace_slice, i).path);
	nps_vec__free(&slices);
	nps_model__lost(in->m, in->nbegun, "events that begin and never end");
	nps_model__lost(in->m, in->endless, "events that end before they begin, or too late for any capture");
	return err;
}

/* --- rows of the tables --------------------------------------------------------------------------- */

/* The process of the job that ROW is of: the vendor's layers of the host have numbers of their own. */
static uint64_t job_of(const struct import *in, const struct row *row)
{
	uint32_t at = nps_map__get(&in->processes, row->pid);

	if (in->app)
		return in->app;
	return at != NPS_NONE && NPS_AT(&in->process, struct process, at).vendor ? row->pid >> 10 : row->pid;
}

static uint64_t gtid_of(const struct import *in, const struct row *row, bool host_layer)
{
	uint64_t pid = host_layer ? job_of(in, row) : row->pid;

	return (pid > UINT32_MAX ? nps_hash2(pid, 0) : pid) << 32 | (row->tid & UINT32_MAX);
}

/* LEN bytes of TEXT as a text of its own: texts move while one is added. */
static uint32_t add_part(struct nps_model *m, const char *text, size_t len)
{
	char copy[4096];

	len = NPS_MIN(len, sizeof(copy));
	memcpy(copy, text, len);
	return nps_strings__add(m->strings, copy, len);
}

/* The id of the call chain that TEXT holds line by line, innermost first. */
static int add_chain(struct import *in, uint32_t text, int64_t *id)
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
		uint32_t stack = len ? add_part(in->m, line, len) : NPS_NONE;

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

static int add_torch(struct import *in, const struct row *row, enum nps_api_type type)
{
	struct nps_torch_table *t = &in->m->torch;
	int64_t chain = NPS_NULL;
	int err = row->stack == NPS_NONE ? 0 : add_chain(in, row->stack, &chain);
	size_t i;

	if (!err)
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
static int add_op(struct import *in, const struct row *row)
{
	struct nps_step_table *t = &in->m->step;
	unsigned long long number;
	char c;
	bool step = sscanf(nps_model__text(in->m, row->name), "ProfilerStep#%llu%c", &number, &c) == 1 &&
		    number <= INT64_MAX;
	int err = add_torch(in, row, NPS_API_TORCH_OP);
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

static int add_api(struct import *in, const struct row *row)
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
	text = add_part(in->m, name + skip, strlen(name + skip));
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

static enum nps_task_class class_of(struct nps_model *m, const struct row *row)
{
	const char *type = nps_model__text(m, row->type);
	bool known;
	enum nps_task_class class = nps_trace__task_class(type, nps_model__text(m, row->name), &known);

	nps_model__lost(m, !known, "tasks of type %.64s, which is not known: not counted as kernels", type);
	return class;
}

static int add_compute(struct nps_model *m, const struct row *row, uint32_t task)
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

static int add_memcpy(struct nps_model *m, const struct row *row, uint32_t task)
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

/* The vendor's pids hold it; others do not, and a trace without it is the first device's. */
static uint32_t device_of(const struct process *p)
{
	return p->device != NPS_NONE ? p->device : p->vendor ? p->pid & 31 : 0;
}

static int add_bounds(struct import *in, const struct row *row, uint32_t task)
{
	const struct limits *limits = &NPS_AT(&in->limits, struct limits, row->limits);
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

static int add_task(struct import *in, const struct row *row, const struct process *p)
{
	struct nps_model *m = in->m;
	struct nps_task_table *t = &m->task;
	enum nps_task_class class = class_of(m, row);
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->start[i] = row->order.high;
	t->end[i] = ~row->order.low;
	t->device[i] = device_of(p);
	t->connection[i] = row->connection;
	t->id[i] = i;
	t->pid[i] = in->app ? in->app : p->vendor ? p->pid >> 10 : p->pid;
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

	return mark ? add_part(m, text, mark - text + 1) : name;
}

/* The lane's name without the word that all lanes have. */
static uint32_t group_of(struct import *in, const struct row *row)
{
	static const char word[] = " Communication";
	uint32_t lane = nps_map__get(&in->threads, nps_hash2(row->pid, row->tid));
	const char *text = nps_model__text(in->m, lane);
	size_t len = strlen(text), cut = sizeof(word) - 1;

	if (len <= cut || strcmp(text + len - cut, word))
		return lane;
	return add_part(in->m, text, len - cut);
}

static int add_collective(struct import *in, const struct row *row, const struct process *p)
{
	struct nps_comm_op_table *t = &in->m->comm_op;
	uint32_t type = collective_type(in->m, row->name), group = group_of(in, row);
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
	t->device[i] = device_of(p);
	t->ranks[i] = NPS_NULL;
	t->model[i] = row->model;
	t->step[i] = NPS_NONE;
	t->tasks[i] = row->limits != NPS_NONE; /* else they are not counted */
	t->measured[i] = 0;
	return 0;
}

static int add_os_call(struct import *in, const struct row *row)
{
	struct nps_osrt_table *t = &in->m->osrt;
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->name[i] = row->name;
	t->gtid[i] = gtid_of(in, row, true);
	t->start[i] = row->order.high;
	t->end[i] = ~row->order.low;
	return 0;
}

static int add_gc(struct import *in, const struct row *row)
{
	struct nps_gc_table *t = &in->m->gc;
	size_t i;
	int err = nps_table__add(&t->t, &i);

	if (err)
		return err;
	t->start[i] = row->order.high;
	t->end[i] = ~row->order.low;
	t->gtid[i] = gtid_of(in, row, true);
	return 0;
}

/*
 * An event without a category is of the type of its process. In a process without a name, as in a slice of
 * a trace or in the output of a simulator of operators, tasks are known by their type.
 */
static int add_rest(struct import *in, const struct row *row)
{
	static const struct process nobody = { .device = NPS_NONE };
	uint32_t at = nps_map__get(&in->processes, row->pid);
	const struct process *p = at == NPS_NONE ? &nobody : &NPS_AT(&in->process, struct process, at);

	if (row->op)
		return add_op(in, row);
	switch (p->layer) {
	case PYTHON:
		return add_op(in, row);
	case GC:
		return add_gc(in, row);
	case CANN:
		return add_api(in, row);
	case OS:
		return add_os_call(in, row);
	case HARDWARE:
		return add_task(in, row, p);
	case COMMUNICATION:
		return row->type == NPS_NONE ? add_collective(in, row, p) : 0;
	case LEFT_OUT:
		break;
	case UNKNOWN:
		if (row->type != NPS_NONE && row->task != NPS_NO_ID)
			return add_task(in, row, p);
		in->foreign++;
		break;
	case FOREIGN: /* that of user's ranges has the name of the application */
		in->foreign++;
		break;
	}
	return 0;
}

/* The next row by start. Among times since 1970 a start of 0 is one that was not recorded. */
static const struct row *next_row(struct import *in, struct nps_ext_sort *from)
{
	const struct row *row;

	while ((row = nps_ext_sort__next(from)) && !row->order.high && in->latest > LONGEST)
		in->timeless++;
	return row;
}

/* All enqueues come before all dequeues in the table. */
static int fill_queue(struct import *in)
{
	struct nps_ext_sort *from = &in->sections[QUEUE], dequeues;
	int err = nps_ext_sort__finish(from);
	const struct row *row;

	nps_ext_sort__init(&dequeues, in->m->tmpfd, sizeof(struct row));
	while (!err && (row = next_row(in, from))) {
		struct row *later;

		if (strncmp(nps_model__text(in->m, row->name), "Dequeue", 7)) {
			err = add_torch(in, row, NPS_API_TORCH_QUEUE);
			continue;
		}
		later = nps_ext_sort__add(&dequeues);
		if (later)
			*later = *row;
		err = dequeues.err;
	}
	err = err ? err : from->err;
	if (!err)
		err = nps_ext_sort__finish(&dequeues);
	while (!err && (row = nps_ext_sort__next(&dequeues)))
		err = add_torch(in, row, NPS_API_TORCH_QUEUE);
	err = err ? err : dequeues.err;
	nps_ext_sort__free(&dequeues);
	nps_ext_sort__free(from);
	return err;
}

static int fill_section(struct import *in, enum section section)
{
	struct nps_ext_sort *from = &in->sections[section];
	int err = nps_ext_sort__finish(from);
	const struct row *row;

	while (!err && (row = next_row(in, from))) {
		/* Times may count from the first event, which is at 0. */
		in->m->start = NPS_MIN(in->m->start, row->order.high);
		nps_model__cover(in->m, row->order.high, ~row->order.low);
		err = section == FRAMES ? add_torch(in, row, NPS_API_PYTHON) : add_rest(in, row);
	}
	err = err ? err : from->err;
	nps_ext_sort__free(from);
	return err;
}

int nps_import__trace(struct nps_model *model, const char *path)
{
	struct import in = { .m = model, .unused = NPS_NONE };
	int err;

	for (int i = 0; i < SECTIONS; i++)
		nps_ext_sort__init(&in.sections[i], model->tmpfd, sizeof(struct row));
	nps_vec__init(&in.process, model->tmpfd, sizeof(struct process));
	nps_vec__init(&in.begun, model->tmpfd, sizeof(struct begun));
	nps_vec__init(&in.limits, model->tmpfd, sizeof(struct limits));
	err = read_events(&in, path);
	if (!err)
		err = fill_queue(&in);
	if (!err)
		err = fill_section(&in, FRAMES);
	if (!err)
		err = fill_section(&in, REST);
	if (!err)
		err = nps_trace__import_tables(model, path);
	nps_model__lost(model, in.timeless, "events whose start is 0, which is no time");
	nps_model__lost(model, in.foreign, "events of processes that no table shows");
	for (int i = 0; i < SECTIONS; i++)
		nps_ext_sort__free(&in.sections[i]);
	nps_vec__free(&in.process);
	nps_map__free(&in.processes);
	nps_map__free(&in.threads);
	nps_vec__free(&in.begun);
	nps_vec__free(&in.limits);
	nps_map__free(&in.top);
	nps_map__free(&in.narrow);
	nps_map__free(&in.chains);
	model->pid = in.app;
	nps_trace__find_rank(model, path);
	if (err == -EILSEQ)
		nps_msg_failure("cannot read %s: it is no trace: name a trace_view.json or msprof_*.json",
				path);
	else if (err)
		nps_msg_failure("cannot read %s: %s", path, strerror(-err));
	return err;
}
