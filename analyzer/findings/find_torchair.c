/* SPDX-License-Identifier: BSD-2-Clause */
/* Head overhead of TorchAir's graphs: feeds the model's rows to the analysis in its order, and reports. */
#include "findings/torchair.h"

#include "base/ext_sort.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORTH 0.01 /* share of the capture from which a graph is a finding */
#define NOISY 0.1 /* share of the Python part that logging may take */

/* A span as it is sorted: by start, the longer first. */
struct feed_row {
	struct nps_sort_key order; /* start, ~end */
	uint64_t thread;
	uint32_t name, caller, inputs;
	uint8_t kind;
};

struct feed {
	const struct nps_model *m;
	struct nps_tah tah;
	struct nps_ext_sort spans;
	struct nps_index chains; /* callchain -> its first row in `frame` */
	bool chained;
	uint8_t *ops, *frames; /* kind of each text + 1 */
	size_t ntexts;
	bool modules; /* there are entries of compiled modules: all operators matter */
};

/* --- from the model ------------------------------------------------------------------------------- */

static enum nps_tah_kind span_kind(struct feed *f, uint32_t text, bool frame)
{
	uint8_t *known = frame ? f->frames : f->ops;

	if (text >= f->ntexts)
		return frame ? NPS_TAH_FRAME : NPS_TAH_OP;
	if (!known[text])
		known[text] = nps_tah__kind(nps_model__text(f->m, text), frame) + 1;
	return known[text] - 1;
}

/* Whether any text is the label of a call. */
static int any_calls(struct feed *f, bool *any)
{
	f->ntexts = f->m->strings->at.len;
	f->ops = calloc(2, f->ntexts + 1);
	if (!f->ops)
		return -ENOMEM;
	f->frames = f->ops + f->ntexts;
	*any = false;
	for (size_t i = 0; f->m->torch.t.len && i < f->ntexts && !*any; i++)
		*any = span_kind(f, i, false) == NPS_TAH_CALL;
	return 0;
}

static int index_chains(struct feed *f)
{
	const struct nps_frame_table *t = &f->m->frame;
	struct nps_pace pace = { .model = f->m };
	uint64_t low = UINT32_MAX, high = 0;
	int err = 0;

	for (size_t i = 0; i < t->t.len; i++) {
		nps_pace__step(&pace);
		low = NPS_MIN(low, (uint64_t)t->id[i]);
		high = NPS_MAX(high, (uint64_t)t->id[i]);
	}
	if (!t->t.len)
		return 0;
	nps_index__init(&f->chains, f->m->tmpfd, low, high, t->t.len);
	f->chained = true;
	for (size_t i = 0; !err && i < t->t.len; i++) {
		nps_pace__step(&pace);
		if (!i || t->id[i] != t->id[i - 1])
			err = nps_index__put(&f->chains, t->id[i], i);
	}
	return err;
}

/* The innermost frame of the job in the call chain of torch row I. */
static uint32_t row_caller(struct feed *f, size_t i)
{
	const struct nps_frame_table *t = &f->m->frame;
	int64_t id = f->m->torch.callchain[i];
	uint32_t row = f->chained && id >= 0 ? nps_index__get(&f->chains, id) : NPS_NONE;

	for (; row < t->t.len && t->id[row] == (uint64_t)id; row++)
		if (span_kind(f, t->stack[row], true) == NPS_TAH_CALLER)
			return t->stack[row];
	return NPS_NONE;
}

static uint32_t inputs_of(const struct nps_model *m, size_t i)
{
	const char *shapes = nps_model__text(m, m->torch.input_shapes[i]);
	uint32_t n = *shapes != 0;

	if (!n)
		return NPS_NONE;
	for (; *shapes; shapes++)
		n += *shapes == ';';
	return n;
}

static int push_row(struct feed *f, size_t i, enum nps_tah_kind kind)
{
	struct feed_row *row = nps_ext_sort__add(&f->spans);

	if (!row)
		return f->spans.err;
	*row = (struct feed_row){ .order = { f->m->torch.start[i], ~f->m->torch.end[i] },
				  .thread = f->m->torch.gtid[i],
				  .name = f->m->torch.name[i],
				  .caller = NPS_NONE,
				  .inputs = NPS_NONE,
				  .kind = kind };
	if (kind == NPS_TAH_CALL)
		row->caller = row_caller(f, i);
	if (kind == NPS_TAH_CALL || kind == NPS_TAH_RUN)
		row->inputs = inputs_of(f->m, i);
	return 0;
}

static int push_steps(struct feed *f)
{
	const struct nps_step_table *t = &f->m->step;

	for (size_t i = 0; i < t->t.len; i++) {
		struct feed_row *row = nps_ext_sort__add(&f->spans);

		if (!row)
			return f->spans.err;
		*row = (struct feed_row){ .order = { t->start[i], ~t->end[i] },
					  .thread = NPS_TAH_NO_THREAD,
					  .name = NPS_NONE,
					  .kind = NPS_TAH_STEP };
	}
	return 0;
}

static int sort_spans(struct feed *f)
{
	const struct nps_torch_table *t = &f->m->torch;
	struct nps_pace pace = { .model = f->m };
	int err = push_steps(f);

	for (size_t i = 0; i < t->t.len && !f->modules; i++) {
		nps_pace__step(&pace);
		f->modules = t->type[i] == NPS_API_PYTHON && span_kind(f, t->name[i], true) == NPS_TAH_MODULE;
	}
	for (size_t i = 0; !err && i < t->t.len; i++) {
		bool frame = t->type[i] == NPS_API_PYTHON;
		enum nps_tah_kind kind = span_kind(f, t->name[i], frame);

		nps_pace__step(&pace);
		if (t->type[i] == NPS_API_TORCH_QUEUE || kind == NPS_TAH_FRAME ||
		    (kind == NPS_TAH_OP && !f->modules))
			continue;
		err = push_row(f, i, kind);
	}
	return err ? err : nps_ext_sort__finish(&f->spans);
}

/* Spans, calls of CANN and tasks in order of start; of equal ones in this order. */
static int feed_merge(struct feed *f)
{
	const struct nps_api_table *api = &f->m->api;
	const struct nps_task_table *task = &f->m->task;
	struct nps_pace pace = { .model = f->m };
	size_t a = 0, k = 0;
	const struct feed_row *row = nps_ext_sort__next(&f->spans);
	int err = 0;

	while (!err && (row || a < api->t.len || k < task->t.len)) {
		uint64_t at = row ? row->order.high : UINT64_MAX;
		uint64_t call = a < api->t.len ? api->start[a] : UINT64_MAX;

		nps_pace__step(&pace);
		if (row && at <= call && (k == task->t.len || at <= task->start[k])) {
			err = nps_tah__span(&f->tah, &(struct nps_tah_span){ .start = at,
									     .end = ~row->order.low,
									     .thread = row->thread,
									     .name = row->name,
									     .caller = row->caller,
									     .inputs = row->inputs,
									     .kind = row->kind });
			row = nps_ext_sort__next(&f->spans);
		} else if (a < api->t.len && (k == task->t.len || call <= task->start[k])) {
			if (api->connection[a] != NPS_NO_ID)
				err = nps_tah__launch(&f->tah, api->gtid[a], call, api->connection[a]);
			a++;
		} else {
			if (task->connection[k] != NPS_NO_ID && task->source[k] != NPS_TIME_HOST_BOUNDS)
				nps_tah__kernel(&f->tah, task->connection[k], task->start[k], task->end[k]);
			k++;
		}
	}
	err = err ? err : f->spans.err;
	return err ? err : nps_tah__finish(&f->tah);
}

/* --- as answers ----------------------------------------------------------------------------------- */

static const struct {
	const char *name, *advice;
} parts[NPS_TAH_PARTS] = {
	[NPS_TAH_FRONTEND] = { "frontend",
			       "what precedes the compiled graph is the framework's (vLLM, MindIE, ...) and "
			       "Dynamo's: look at the preparation of inputs, at graph breaks and guards" },
	[NPS_TAH_PYTHON] = { "Python part of TorchAir",
			     "look at inputs that are not tensors or not contiguous and at log levels; then "
			     "report it to TorchAir's developers" },
	[NPS_TAH_CPP] = { "C++ part of TorchAir", "look at the number of inputs and outputs; then report it "
						  "to TorchAir's developers" },
	[NPS_TAH_GE] = { "graph engine", "look at dynamic shapes and the size of the graph; then report it "
					 "to CANN's developers" },
};

static void graph_label(const struct nps_model *m, const struct nps_tah_graph *g, char *out, size_t size)
{
	const char *caller = nps_model__text(m, g->caller), *module = nps_model__text(m, g->module);
	char ordinal[48] = "";

	if (g->rest) {
		snprintf(out, size, "other graphs");
		return;
	}
	if (g->ordinal)
		snprintf(ordinal, sizeof(ordinal), "call %u%s", g->ordinal,
			 g->module == NPS_NONE ? " of the step" : "");
	if (g->caller == NPS_NONE && g->module == NPS_NONE)
		snprintf(out, size, "%s", *ordinal ? ordinal : "all calls");
	else
		snprintf(out, size, "%.*s%s%.*s%s%s", (int)nps_utf8_fit(caller, 200), caller,
			 g->caller != NPS_NONE && g->module != NPS_NONE ? ", " : "",
			 (int)nps_utf8_fit(module, 200), module, g->ordinal > 1 ? ", " : "",
			 g->ordinal > 1 ? ordinal : "");
}

static double us_or_null(bool known, uint64_t ns)
{
	return known ? ns / 1e3 : NPS_NAN;
}

static double part_us(const struct nps_tah_call *c, enum nps_tah_part part)
{
	uint64_t ns = 0;
	bool known = nps_tah__part(c, part, &ns);

	return us_or_null(known, ns);
}

/* Why a part of it is not known, NULL: all are. */
static const char *call_reason(const struct nps_tah_call *c)
{
	if (c->execute)
		return c->run ? NULL : "no Run is in the call before the execution";
	return c->mode != NPS_NONE ? "this mode does not use GE"
				   : "no ExecuteGraph or RunGraph is in the call";
}

static const char *const since[] = { "module entry", "previous call", "step start", "unknown" };

#define SPAN(from, to) us_or_null((to), nps_span((from), (to)))

#define CALL_COLUMNS(C)                                                                                      \
	C("start_us", TIME, "at, ms", r->start)                                                              \
	C("end_us", TIME, NULL, r->end)                                                                      \
	C("thread", COUNT, NULL, r->thread &UINT32_MAX)                                                      \
	C("graph", COUNT, "graph", r->graph)                                                                 \
	C("cold", BOOL, "cold", r->cold)                                                                     \
	C("frontend_us", US, "frontend", part_us(r, NPS_TAH_FRONTEND))                                       \
	C("torchair_python_us", US, "TorchAir Python", part_us(r, NPS_TAH_PYTHON))                           \
	C("torchair_cpp_us", US, "TorchAir C++", part_us(r, NPS_TAH_CPP))                                    \
	C("ge_us", US, "GE", part_us(r, NPS_TAH_GE))                                                         \
	C("call_us", NS, "call", nps_span(r->start, r->end))                                                 \
	C("before_execute_us", US, NULL, SPAN(r->start, r->execute))                                         \
	C("frontend_from", TEXT, "from", since[r->since], .print = 5)                                        \
	C("execute_us", US, NULL, us_or_null(r->execute, nps_span(r->execute, r->execute_end)))              \
	C("execute_to_first_launch_us", US, NULL, SPAN(r->execute, r->first_launch))                         \
	C("execute_to_first_kernel_us", US, NULL, SPAN(r->execute, r->first_kernel))                         \
	C("device_us", US, NULL, us_or_null(r->first_kernel, r->device_ns))                                  \
	C("crosses_step", BOOL, NULL, r->crosses_step)                                                       \
	C("inputs", COUNT, NULL, r->inputs == NPS_NONE ? NPS_NAN : r->inputs, .optional = true)              \
	C("mode", TEXT, "mode", nps_model__text_or_null(m, r->mode), .optional = true)                       \
	C("reason", TEXT, NULL, call_reason(r), .optional = true)

NPS_FIND_TABLE(calls, "torchair.rows", "TorchAir calls, by time, us", struct nps_model, struct nps_tah_call,
	       CALL_COLUMNS)

static enum nps_tah_part largest_part(const struct nps_tah_graph *g)
{
	enum nps_tah_part largest = NPS_TAH_FRONTEND;

	for (int part = 0; part < NPS_TAH_PARTS; part++)
		if (g->parts[part].all.total > g->parts[largest].all.total)
			largest = part;
	return largest;
}

static uint64_t head_total(const struct nps_tah_graph *g)
{
	return g->parts[NPS_TAH_FRONTEND].all.total + g->whole.total;
}

/* Sums up the numbers in a sentence. */
static void verdict(const struct nps_tah_graph *g, char *out, size_t size)
{
	enum nps_tah_part part = largest_part(g);
	const struct nps_histogram *h = &g->parts[part].all;
	double head = g->whole.count ? head_total(g) / 1e3 / g->whole.count : 0;
	double device = g->device_calls ? g->device_ns / 1e3 / g->device_calls : 0;
	char rest[128] = "";

	if (!g->whole.count) {
		snprintf(out, size, "all calls compile or load the graph");
		return;
	}
	if (g->device_calls)
		snprintf(rest, sizeof(rest), "; its work on the device takes %.1f us, so the overhead %s",
			 device, device >= head ? "can hide behind it" : "cannot hide behind it");
	if (h->total)
		snprintf(out, size,
			 "the %s is the largest part: %.1f of %.1f us a call on average, median %.1f us, at "
			 "most "
			 "%.1f us%s",
			 parts[part].name, h->total / 1e3 / g->whole.count, head,
			 nps_histogram__quantile(h, 0.5) / 1e3, h->most / 1e3, rest);
	else
		snprintf(out, size, "a call takes %.1f us on average; its parts have no labels%s", head,
			 rest);
}

struct graph_row {
	const struct nps_tah_graph *g;
	char name[512], verdict[512];
};

static uint64_t frontend_rest(const struct nps_tah_graph *g)
{
	return nps_span(g->cache + g->guards + g->region, g->parts[NPS_TAH_FRONTEND].all.total);
}

static double share_of_steps(const struct nps_tah_graph *g, enum nps_tah_part part)
{
	return g->step_ns ? (double)g->parts[part].in_steps / g->step_ns : NPS_NAN;
}

#define TIMES(C, key, mean_title, h)                                                                         \
	C(key ".count", COUNT, NULL, (h)->count)                                                             \
	C(key ".total_us", NS, NULL, (h)->total)                                                             \
	C(key ".mean_us", US, mean_title, nps_histogram__mean_us(h))                                         \
	C(key ".p50_us", US, NULL, nps_histogram__quantile_us(h, 0.5))                                       \
	C(key ".p99_us", US, NULL, nps_histogram__quantile_us(h, 0.99))                                      \
	C(key ".max_us", US, NULL, nps_histogram__quantile_us(h, 1))

#define PART(C, key, title, part)                                                                            \
	TIMES(C, "parts." key, title, &r->g->parts[part].all)                                                \
	C("parts." key ".share_of_steps", NUMBER, NULL, share_of_steps(r->g, part))

#define GRAPH_COLUMNS(C)                                                                                     \
	C("graph", TEXT, "graph", r->name)                                                                   \
	C("calls", COUNT, "calls", r->g->calls)                                                              \
	C("cold", COUNT, "cold", r->g->cold)                                                                 \
	C("without_run", COUNT, NULL, r->g->without_run)                                                     \
	C("without_execute", COUNT, NULL, r->g->without_execute)                                             \
	C("mode", TEXT, "mode", nps_model__text_or_null(m, r->g->mode), .optional = true)                    \
	C("call.count", COUNT, NULL, r->g->whole.count)                                                      \
	C("call.total_us", NS, NULL, r->g->whole.total)                                                      \
	C("call.mean_us", US, "call", nps_histogram__mean_us(&r->g->whole), .print = 9)                      \
	C("call.p50_us", US, NULL, nps_histogram__quantile_us(&r->g->whole, 0.5))                            \
	C("call.p99_us", US, "call p99", nps_histogram__quantile_us(&r->g->whole, 0.99), .print = 10)        \
	C("call.max_us", US, "call max", nps_histogram__quantile_us(&r->g->whole, 1), .print = 11)           \
	PART(C, "frontend", "frontend", NPS_TAH_FRONTEND)                                                    \
	PART(C, "torchair_python", "TorchAir Python", NPS_TAH_PYTHON)                                        \
	PART(C, "torchair_cpp", "TorchAir C++", NPS_TAH_CPP)                                                 \
	PART(C, "ge", "GE", NPS_TAH_GE)                                                                      \
	C("residual_us", NS, NULL, r->g->residual)                                                           \
	C("frontend_split.cache_lookup_us", NS, NULL, r->g->cache)                                           \
	C("frontend_split.guards_us", NS, NULL, r->g->guards)                                                \
	C("frontend_split.compiled_region_us", NS, NULL, r->g->region)                                       \
	C("frontend_split.rest_us", NS, NULL, frontend_rest(r->g))                                           \
	C("python_causes.tensors_made", COUNT, NULL, r->g->tensors)                                          \
	C("python_causes.tensors_made_us", NS, NULL, r->g->tensor_ns)                                        \
	C("python_causes.copies", COUNT, NULL, r->g->copies)                                                 \
	C("python_causes.copies_us", NS, NULL, r->g->copy_ns)                                                \
	C("python_causes.log_calls", COUNT, NULL, r->g->loggings)                                            \
	C("python_causes.log_calls_us", NS, NULL, r->g->logging_ns)                                          \
	TIMES(C, "execute_to_first_launch", NULL, &r->g->launch)                                             \
	TIMES(C, "execute_to_first_kernel", "to first kernel", &r->g->kernel)                                \
	C("device_us_per_call", US, "on device",                                                             \
	  r->g->device_calls ? r->g->device_ns / 1e3 / r->g->device_calls : NPS_NAN)                         \
	C("verdict", TEXT, NULL, r->verdict)                                                                 \
	C("advice", TEXT, NULL, parts[largest_part(r->g)].advice)

NPS_FIND_TABLE(graphs, "torchair.graphs", "TorchAir graphs, mean of calls that are not cold, us",
	       struct nps_model, struct graph_row, GRAPH_COLUMNS)

static struct graph_row graph_row(const struct nps_model *m, const struct nps_tah_graph *g)
{
	struct graph_row row = { .g = g };

	graph_label(m, g, row.name, sizeof(row.name));
	verdict(g, row.verdict, sizeof(row.verdict));
	return row;
}

static cJSON *graph_object(const struct nps_model *m, const struct nps_tah_graph *g)
{
	const struct graph_row row = graph_row(m, g);
	cJSON *object = nps_find__object(&graphs, m, &row);

	if (g->whole.count)
		cJSON_AddItemToObject(object, "slowest", nps_find__object(&calls, m, &g->slowest));
	return object;
}

static int log_finding(struct nps_find *find, const struct nps_tah_graph *g, const char *name)
{
	uint64_t python = g->parts[NPS_TAH_PYTHON].all.total;
	uint64_t whole = python ? python : g->whole.total;
	cJSON *numbers;

	if (g->logging_ns < NOISY * whole || !g->loggings || find->span_us <= 0)
		return 0;
	numbers = cJSON_CreateObject();
	cJSON_AddNumberToObject(numbers, "log_calls", (double)g->loggings);
	nps_find__number(numbers, "log_calls_us", g->logging_ns / 1e3);
	return nps_find__add(find, "torchair_logging", g->logging_ns / 1e3 / find->span_us, numbers,
			     nps_find__object(&calls, find->model, &g->slowest),
			     "raise TorchAir's log level: at DEBUG it describes every input of every call",
			     "log calls take %.1f us within calls of %s", g->logging_ns / 1e3, name);
}

static int graph_findings(struct nps_find *find, const struct nps_tah_graph *g)
{
	const struct graph_row row = graph_row(find->model, g);
	double head = head_total(g) / 1e3;
	cJSON *numbers, *graph;
	int err;

	if (!g->whole.count || find->span_us <= 0 || head < WORTH * find->span_us)
		return 0;
	numbers = cJSON_CreateObject();
	cJSON_AddNumberToObject(numbers, "calls", (double)g->whole.count);
	nps_find__number(numbers, "head_us", head);
	graph = nps_find__object(&graphs, find->model, &row);
	cJSON_AddItemToObject(numbers, "parts", cJSON_DetachItemFromObjectCaseSensitive(graph, "parts"));
	cJSON_Delete(graph);
	err = nps_find__add(find, "torchair_head", head / find->span_us, numbers,
			    nps_find__object(&calls, find->model, &g->slowest), parts[largest_part(g)].advice,
			    "head overhead of compiled graph (%.*s) takes %.1f us in %llu calls; %s",
			    (int)nps_utf8_fit(row.name, 120), row.name, head,
			    (unsigned long long)g->whole.count, row.verdict);
	return err ? err : log_finding(find, g, row.name);
}

static int by_head(const void *a, const void *b)
{
	const struct nps_tah_graph *x = *(const struct nps_tah_graph *const *)a;
	const struct nps_tah_graph *y = *(const struct nps_tah_graph *const *)b;
	uint64_t p = head_total(x), q = head_total(y);

	return p != q ? (p < q ? 1 : -1) : (x > y) - (x < y);
}

static int torchair_report(struct nps_find *find, const struct nps_tah *tah)
{
	const struct nps_tah_graph *sorted[128] = { NULL };
	cJSON *section, *since, *list;
	uint64_t cold = 0;
	size_t n = NPS_MIN(tah->graphs.len, NPS_ARRAY_SIZE(sorted));
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		sorted[i] = &NPS_AT(&tah->graphs, struct nps_tah_graph, i);
		cold += sorted[i]->cold;
	}
	section = cJSON_AddObjectToObject(find->document, "torchair");
	cJSON_AddNumberToObject(section, "calls", (double)tah->ended);
	cJSON_AddNumberToObject(section, "cold", (double)cold);
	cJSON_AddNumberToObject(section, "left_out", (double)tah->dropped);
	since = cJSON_AddObjectToObject(section, "frontend_from");
	cJSON_AddNumberToObject(since, "module_entry", (double)tah->sinces[NPS_TAH_MODULE_ENTRY]);
	cJSON_AddNumberToObject(since, "previous_call", (double)tah->sinces[NPS_TAH_PREVIOUS]);
	cJSON_AddNumberToObject(since, "step_start", (double)tah->sinces[NPS_TAH_STEP_START]);
	cJSON_AddNumberToObject(since, "unknown", (double)tah->sinces[NPS_TAH_NOWHERE]);
	list = cJSON_AddArrayToObject(section, "graphs"); /* `graph` of calls is an index of it */
	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(list, graph_object(find->model, sorted[i]));
	nps_find__rows(find->document, &calls, find->model, tah->calls.data, tah->calls.len, tah->calls.elem);
	qsort(sorted, n, sizeof(*sorted), by_head);
	for (size_t i = 0; !err && i < NPS_MIN(n, 5UL); i++)
		err = graph_findings(find, sorted[i]);
	return err;
}

/* Most jobs have no such graphs, and nothing is walked for them. */
static int feed_graphs(struct feed *f)
{
	bool any = false;
	int err = any_calls(f, &any);

	if (err || !any)
		return err;
	err = index_chains(f);
	if (err)
		return err;
	err = sort_spans(f);
	return err ? err : feed_merge(f);
}

static int torchair_find(struct nps_find *find)
{
	struct feed f = { .m = find->model };
	int err;

	nps_ext_sort__init(&f.spans, f.m->tmpfd, sizeof(struct feed_row));
	err = nps_tah__init(&f.tah, f.m->tmpfd);
	err = err ? err : feed_graphs(&f);
	if (err || !f.tah.ended)
		goto out;
	err = torchair_report(find, &f.tah);
out:
	if (f.chained)
		nps_index__free(&f.chains);
	nps_ext_sort__free(&f.spans);
	nps_tah__free(&f.tah);
	free(f.ops);
	return err;
}

static void torchair_show(const struct nps_view *v)
{
	const cJSON *graph, *rows = nps_view__at(v, graphs.path);
	size_t n = 0;

	nps_view__table(v, &graphs);
	cJSON_ArrayForEach(graph, rows)
	{
		if (n++ == v->top)
			break;
		nps_print_text(v->out, nps_view__text(graph, "graph"));
		fprintf(v->out, ": ");
		nps_print_text(v->out, nps_view__text(graph, "verdict"));
		putc('\n', v->out);
	}
	nps_view__table(v, &calls);
}

const struct nps_find_question nps_question_torchair = { .find = torchair_find, .show = torchair_show };
