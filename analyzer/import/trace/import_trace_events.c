/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/trace/import_trace_events.h"

#include "base/progress.h"
#include "import/trace/import_trace_read.h"
#include "import/trace/trace_slices.h"

#include <errno.h>
#include <string.h>

#define NAMES 65536 /* processes and threads whose names are kept */
#define PROGRESS (1U << 12) /* events between two reports of what was read */
#define FIRST_NARROW 0xc0000000U /* numbers of ids that are wider than the columns that hold them */

/* An event that has begun, above those that its thread had begun before. */
struct begun {
	struct nps_trace_row row;
	uint32_t below; /* NPS_NONE: none */
	uint8_t section;
};

struct trace_reading {
	struct nps_model *m;
	struct nps_trace_events *events;
	struct nps_vec begun; /* struct begun */
	struct nps_map top; /* hash of pid and tid -> its innermost event that has begun */
	uint32_t unused; /* chain of rows of `begun` */
	struct nps_map narrow; /* hash of an id of more than 32 bits -> its number */
	uint32_t nnarrow;
	uint64_t nbegun; /* that have not ended */
	uint64_t endless; /* events that last longer than any capture, and ends without a begin */
};

static uint32_t intern(struct trace_reading *in, const struct nps_trace_text *text, int *err)
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
static uint32_t narrow_id(struct trace_reading *in, uint64_t id, int *err)
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

static uint32_t id_or_none(struct trace_reading *in, const struct nps_trace_text *text, int *err)
{
	uint64_t value;

	return nps_trace__u64(text, &value) ? narrow_id(in, value, err) : NPS_NO_ID;
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
static int find_process(struct trace_reading *in, uint64_t pid, struct nps_trace_process **p)
{
	uint32_t row = nps_map__get(&in->events->processes, pid);

	*p = NULL;
	if (row == NPS_NONE && in->events->process.len == NAMES)
		return 0;
	if (row == NPS_NONE) {
		*p = nps_vec__push(&in->events->process);
		if (!*p || nps_map__put(&in->events->processes, pid, in->events->process.len - 1))
			return -ENOMEM;
		**p = (struct nps_trace_process){ .pid = pid, .device = NPS_NONE };
		return 0;
	}
	*p = &NPS_AT(&in->events->process, struct nps_trace_process, row);
	return 0;
}

static enum nps_traced_layer layer_of(const struct nps_trace_text *name)
{
	static const struct {
		const char *name;
		enum nps_traced_layer layer;
	} layers[] = {
		{ "Python", NPS_TRACED_PYTHON },
		{ "Python GC", NPS_TRACED_GC },
		{ "CANN", NPS_TRACED_CANN },
		{ "OS Runtime API", NPS_TRACED_OS },
		{ "Ascend Hardware", NPS_TRACED_HARDWARE },
		{ "HCCL", NPS_TRACED_COMMUNICATION },
		{ "Communication", NPS_TRACED_COMMUNICATION },
		{ "Overlap Analysis", NPS_TRACED_LEFT_OUT },
		{ "Process Scheduling", NPS_TRACED_LEFT_OUT },
		{ "CPU Scheduling", NPS_TRACED_LEFT_OUT },
		{ "CCU", NPS_TRACED_LEFT_OUT },
		{ "DPU", NPS_TRACED_LEFT_OUT },
		{ "Biu Perf", NPS_TRACED_LEFT_OUT },
		{ "Block Detail", NPS_TRACED_LEFT_OUT },
		{ "Fusion Task", NPS_TRACED_LEFT_OUT },
	};

	for (size_t i = 0; i < NPS_ARRAY_SIZE(layers); i++)
		if (is(name, layers[i].name))
			return layers[i].layer;
	return begins(name, "Step Trace") ? NPS_TRACED_LEFT_OUT : NPS_TRACED_FOREIGN;
}

static int read_metadata(struct trace_reading *in, const struct nps_trace_event *event)
{
	const struct nps_trace_text *name = &event->value[NPS_TRACE_NAME];
	uint64_t pid = number_or_hash(&event->pid), tid = number_or_hash(&event->tid), device;
	struct nps_trace_text rest = event->value[NPS_TRACE_LABELS];
	struct nps_trace_process *p;
	int err = find_process(in, pid, &p);

	if (err || !p)
		return err;
	if (is(&event->name, "process_name") && name->at) {
		p->layer = layer_of(name);
		if (p->layer == NPS_TRACED_PYTHON && !in->events->app)
			in->events->app = pid;
	} else if (is(&event->name, "process_labels") && begins(&rest, "NPU ")) {
		rest.at += 4;
		rest.len -= 4;
		if (nps_trace__u64(&rest, &device) && device <= UINT16_MAX)
			p->device = device;
	} else if (is(&event->name, "process_sort_index")) {
		p->vendor = pid >> 10 && nps_trace__u64(&event->value[NPS_TRACE_SORT_INDEX], &device) &&
			    device == (pid >> 5 & 31);
	} else if (is(&event->name, "thread_name") && name->at && in->events->threads.len < NAMES) {
		uint32_t text = intern(in, name, &err), thread = narrow_id(in, tid, &err);

		err = err ? err : nps_map__put(&in->events->threads, nps_hash2(pid, thread), text);
	}
	return err;
}

static enum nps_trace_section section_of(const struct nps_trace_event *event)
{
	return is(&event->cat, "enqueue") || is(&event->cat, "dequeue") ? NPS_TRACE_QUEUE
	       : is(&event->cat, "python_function")			? NPS_TRACE_FRAMES
									: NPS_TRACE_REST;
}

/*
 * A task of npuscope's own traces that nobody measured has the least length that viewers show, which is none.
 */
static int read_source(struct trace_reading *in, const struct nps_trace_event *event,
		       struct nps_trace_row *row)
{
	const struct nps_trace_text *value = event->value;
	struct nps_trace_limits *limits;

	row->limits = NPS_NONE;
	row->source = is(&value[NPS_TRACE_SOURCE], "device log") ? NPS_TIME_DEVICE_LOG : NPS_TIME_IMPORTED;
	if (!is(&value[NPS_TRACE_SOURCE], "host bounds"))
		return 0;
	limits = nps_vec__push(&in->events->limits);
	if (!limits || in->events->limits.len >= NPS_NONE)
		return -ENOMEM;
	*limits = (struct nps_trace_limits){ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	nps_trace__ns(&value[NPS_TRACE_START_LOW], &limits->start_low);
	nps_trace__ns(&value[NPS_TRACE_START_HIGH], &limits->start_high);
	nps_trace__ns(&value[NPS_TRACE_END_LOW], &limits->end_low);
	nps_trace__ns(&value[NPS_TRACE_END_HIGH], &limits->end_high);
	row->limits = in->events->limits.len - 1;
	row->source = NPS_TIME_HOST_BOUNDS;
	row->order.low = ~event->start;
	return 0;
}

static int decode_row(struct trace_reading *in, const struct nps_trace_event *event,
		      enum nps_trace_section section, struct nps_trace_row *row)
{
	const struct nps_trace_text *value = event->value;
	int err = 0;

	*row = (struct nps_trace_row){
		.order = { event->start, ~event->end },
		.pid = number_or_hash(&event->pid),
		.tid = narrow_id(in, number_or_hash(&event->tid), &err),
		.sequence = i64_or_null(&value[NPS_TRACE_SEQUENCE]),
		.correlation = i64_or_null(&value[NPS_TRACE_CORRELATION]),
		.size = i64_or_null(
			&value[section == NPS_TRACE_REST && value[NPS_TRACE_COUNT].at ? NPS_TRACE_COUNT
										      : NPS_TRACE_SIZE]),
		.name = intern(in, &event->name, &err),
		.type = intern(in,
			       &value[value[NPS_TRACE_SUBTYPE].at ? NPS_TRACE_SUBTYPE : NPS_TRACE_TASK_TYPE],
			       &err),
		.connection = id_or_none(in, &value[NPS_TRACE_CONNECTION], &err),
		.stream = u32_or(&value[NPS_TRACE_STREAM], NPS_NO_ID),
		.task = u32_or(&value[NPS_TRACE_TASK], NPS_NO_ID),
		.batch = u32_or(&value[NPS_TRACE_BATCH], 0),
		.subtask = u32_or(&value[NPS_TRACE_SUBTASK], NPS_NO_ID),
		.model = u32_or(&value[NPS_TRACE_MODEL], NPS_NO_ID),
		.shapes = intern(in, &value[NPS_TRACE_SHAPES], &err),
		.types = intern(in, &value[NPS_TRACE_TYPES], &err),
		.stack = intern(in, &value[NPS_TRACE_STACK], &err),
		.item = intern(in, &value[NPS_TRACE_ITEM], &err),
		.algorithm = intern(in, &value[NPS_TRACE_ALGORITHM], &err),
		.forward = u32_or(&value[NPS_TRACE_FORWARD], 0),
		.op = is(&event->cat, "cpu_op") || is(&event->cat, "user_annotation"),
	};
	return err ? err : read_source(in, event, row);
}

static int keep_row(struct trace_reading *in, enum nps_trace_section section, const struct nps_trace_row *row)
{
	struct nps_trace_row *to;

	if (~row->order.low - row->order.high > NPS_TRACE_LONGEST) {
		in->endless++;
		return 0;
	}
	in->events->latest = NPS_MAX(in->events->latest, row->order.high);
	to = nps_ext_sort__add(&in->events->sections[section]);
	if (!to)
		return in->events->sections[section].err;
	*to = *row;
	return 0;
}

static int read_span(struct trace_reading *in, const struct nps_trace_event *event)
{
	enum nps_trace_section section = section_of(event);
	struct nps_trace_row row;
	int err = decode_row(in, event, section, &row);

	return err ? err : keep_row(in, section, &row);
}

static uint64_t thread_key(const struct nps_trace_event *event)
{
	return nps_hash2(number_or_hash(&event->pid), number_or_hash(&event->tid));
}

/* B: what the thread of EVENT begins lies within what it had begun. */
static int read_begin(struct trace_reading *in, const struct nps_trace_event *event)
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
	err = decode_row(in, event, begun->section, &begun->row);
	in->nbegun++;
	return err ? err : nps_map__put(&in->top, thread, at);
}

/* E: of what its thread began last. */
static int read_end(struct trace_reading *in, const struct nps_trace_event *event)
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
	err = err ? err : keep_row(in, begun->section, &begun->row);
	begun->below = in->unused;
	in->unused = at;
	in->nbegun--;
	return err;
}

static int import_event(struct trace_reading *in, const struct nps_trace_event *event)
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

static int import_slice(struct trace_reading *in, const char *path)
{
	struct nps_trace_reader reader;
	struct nps_trace_event event;
	uint64_t shown = 0, n = 0;
	int err = nps_trace__open(&reader, path);

	if (err)
		return err;
	nps_progress__stage(in->m->progress, "reading", 0, NULL);
	while ((err = nps_trace__next(&reader, &event)) > 0) {
		err = import_event(in, &event);
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

static int import_slices(struct trace_reading *in, const char *path)
{
	struct nps_vec slices;
	int err;

	nps_vec__init(&slices, in->m->tmpfd, sizeof(struct nps_trace_slice));
	err = nps_trace_slices__find(&slices, path);
	for (size_t i = 0; !err && i < slices.len; i++)
		err = import_slice(in, NPS_AT(&slices, struct nps_trace_slice, i).path);
	nps_vec__free(&slices);
	nps_model__lost(in->m, in->nbegun, "events that begin and never end");
	nps_model__lost(in->m, in->endless, "events that end before they begin, or too late for any capture");
	return err;
}

int nps_trace_events__read(struct nps_trace_events *events, struct nps_model *m, const char *path)
{
	struct trace_reading in = { .m = m, .events = events, .unused = NPS_NONE };
	int err;

	*events = (struct nps_trace_events){ 0 };
	for (int i = 0; i < NPS_TRACE_SECTIONS; i++)
		nps_ext_sort__init(&events->sections[i], m->tmpfd, sizeof(struct nps_trace_row));
	nps_vec__init(&events->process, m->tmpfd, sizeof(struct nps_trace_process));
	nps_vec__init(&events->limits, m->tmpfd, sizeof(struct nps_trace_limits));
	nps_vec__init(&in.begun, m->tmpfd, sizeof(struct begun));
	err = import_slices(&in, path);
	nps_vec__free(&in.begun);
	nps_map__free(&in.top);
	nps_map__free(&in.narrow);
	return err;
}

void nps_trace_events__free(struct nps_trace_events *events)
{
	for (int i = 0; i < NPS_TRACE_SECTIONS; i++)
		nps_ext_sort__free(&events->sections[i]);
	nps_vec__free(&events->process);
	nps_map__free(&events->processes);
	nps_map__free(&events->threads);
	nps_vec__free(&events->limits);
}
