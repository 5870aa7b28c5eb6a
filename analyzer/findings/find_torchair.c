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
struct row {
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

static enum nps_tah_kind kind_of(struct feed *f, uint32_t text, bool frame)
{
	uint8_t *known = frame ? f->frames : f->ops;

	if (text >= f->ntexts)
		return frame ? NPS_TAH_FRAME : NPS_TAH_OP;
	if (!known[text])
		known[text] = nps_tah__kind(nps_model__text(f->m, text), frame) + 1;
	return known[text] - 1;
}

/* Whether any text is the label of a call: most jobs have no such graphs, and nothing is walked for them. */
static int any_calls(struct feed *f, bool *any)
{
	f->ntexts = f->m->strings->at.len;
	f->ops = calloc(2, f->ntexts + 1);
	if (!f->ops)
		return -ENOMEM;
	f->frames = f->ops + f->ntexts;
	*any = false;
	for (size_t i = 0; f->m->torch.t.len && i < f->ntexts && !*any; i++)
		*any = kind_of(f, i, false) == NPS_TAH_CALL;
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
static uint32_t caller_of(struct feed *f, size_t i)
{
	const struct nps_frame_table *t = &f->m->frame;
	int64_t id = f->m->torch.callchain[i];
	uint32_t row = f->chained && id >= 0 ? nps_index__get(&f->chains, id) : NPS_NONE;

	for (; row < t->t.len && t->id[row] == (uint64_t)id; row++)
		if (kind_of(f, t->stack[row], true) == NPS_TAH_CALLER)
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
	struct row *row = nps_ext_sort__add(&f->spans);

	if (!row)
		return f->spans.err;
	*row = (struct row){ .order = { f->m->torch.start[i], ~f->m->torch.end[i] },
			     .thread = f->m->torch.gtid[i],
			     .name = f->m->torch.name[i],
			     .caller = NPS_NONE,
			     .inputs = NPS_NONE,
			     .kind = kind };
	if (kind == NPS_TAH_CALL)
		row->caller = caller_of(f, i);
	if (kind == NPS_TAH_CALL || kind == NPS_TAH_RUN)
		row->inputs = inputs_of(f->m, i);
	return 0;
}

static int push_steps(struct feed *f)
{
	const struct nps_step_table *t = &f->m->step;

	for (size_t i = 0; i < t->t.len; i++) {
		struct row *row = nps_ext_sort__add(&f->spans);

		if (!row)
			return f->spans.err;
		*row = (struct row){ .order = { t->start[i], ~t->end[i] },
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
		f->modules = t->type[i] == NPS_API_PYTHON && kind_of(f, t->name[i], true) == NPS_TAH_MODULE;
	}
	for (size_t i = 0; !err && i < t->t.len; i++) {
		bool frame = t->type[i] == NPS_API_PYTHON;
		enum nps_tah_kind kind = kind_of(f, t->name[i], frame);

		nps_pace__step(&pace);
		if (t->type[i] == NPS_API_TORCH_QUEUE || kind == NPS_TAH_FRAME ||
		    (kind == NPS_TAH_OP && !f->modules))
			continue;
		err = push_row(f, i, kind);
	}
	return err ? err : nps_ext_sort__finish(&f->spans);
}

/* Spans, calls of CANN and tasks in order of start; of equal ones in this order. */
static int merge(struct feed *f)
{
	const struct nps_api_table *api = &f->m->api;
	const struct nps_task_table *task = &f->m->task;
	struct nps_pace pace = { .model = f->m };
	size_t a = 0, k = 0;
	const struct row *row = nps_ext_sort__next(&f->spans);
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
	const char *key, *name, *advice;
} parts[NPS_TAH_PARTS] = {
	[NPS_TAH_FRONTEND] = { "frontend", "frontend",
			       "what precedes the compiled graph is the framework's (vLLM, MindIE, ...) and "
			       "Dynamo's: look at the preparation of inputs, at graph breaks and guards" },
	[NPS_TAH_PYTHON] = { "torchair_python", "Python part of TorchAir",
			     "look at inputs that are not tensors or not contiguous and at log levels; then "
			     "report it to TorchAir's developers" },
	[NPS_TAH_CPP] = { "torchair_cpp", "C++ part of TorchAir",
			  "look at the number of inputs and outputs; then report it to TorchAir's "
			  "developers" },
	[NPS_TAH_GE] = { "ge", "graph engine",
			 "look at dynamic shapes and the size of the graph; then report it to CANN's "
			 "developers" },
};

static void add_times(cJSON *object, const char *key, const struct nps_histogram *h)
{
	cJSON *times = cJSON_AddObjectToObject(object, key);

	cJSON_AddNumberToObject(times, "count", (double)h->count);
	nps_find__number(times, "total_us", h->total / 1e3);
	nps_find__number(times, "mean_us", h->count ? h->total / 1e3 / h->count : NPS_NAN);
	nps_find__number(times, "p50_us", h->count ? nps_histogram__quantile(h, 0.5) / 1e3 : NPS_NAN);
	nps_find__number(times, "p99_us", h->count ? nps_histogram__quantile(h, 0.99) / 1e3 : NPS_NAN);
	nps_find__number(times, "max_us", h->count ? h->most / 1e3 : NPS_NAN);
}

static void graph_name(const struct nps_model *m, const struct nps_tah_graph *g, char *out, size_t size)
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

static cJSON *call_object(const struct nps_model *m, const struct nps_tah_call *c)
{
	static const char *const since[] = { "module entry", "previous call", "step start", "unknown" };
	cJSON *object = cJSON_CreateObject();
	uint64_t ns;

	nps_find__time(object, "start_us", c->start);
	nps_find__time(object, "end_us", c->end);
	cJSON_AddNumberToObject(object, "thread", (double)(c->thread & UINT32_MAX));
	cJSON_AddNumberToObject(object, "graph", c->graph);
	cJSON_AddBoolToObject(object, "cold", c->cold);
	for (int part = 0; part < NPS_TAH_PARTS; part++) {
		char key[48];
		bool known = nps_tah__part(c, part, &ns);

		snprintf(key, sizeof(key), "%s_us", parts[part].key);
		nps_find__number(object, key, us_or_null(known, ns));
	}
	nps_find__number(object, "call_us", nps_find__ns(c->start, c->end) / 1e3);
	nps_find__number(object, "before_execute_us",
			 us_or_null(c->execute, nps_find__ns(c->start, c->execute)));
	cJSON_AddStringToObject(object, "frontend_from", since[c->since]);
	nps_find__number(object, "execute_us",
			 us_or_null(c->execute, nps_find__ns(c->execute, c->execute_end)));
	nps_find__number(object, "execute_to_first_launch_us",
			 us_or_null(c->first_launch, nps_find__ns(c->execute, c->first_launch)));
	nps_find__number(object, "execute_to_first_kernel_us",
			 us_or_null(c->first_kernel, nps_find__ns(c->execute, c->first_kernel)));
	nps_find__number(object, "device_us", us_or_null(c->first_kernel, c->device_ns));
	cJSON_AddBoolToObject(object, "crosses_step", c->crosses_step);
	if (c->inputs != NPS_NONE)
		cJSON_AddNumberToObject(object, "inputs", c->inputs);
	if (c->mode != NPS_NONE)
		cJSON_AddStringToObject(object, "mode", nps_model__text(m, c->mode));
	if (!c->execute)
		cJSON_AddStringToObject(object, "reason",
					c->mode != NPS_NONE ? "this mode does not use GE"
							    : "no ExecuteGraph or RunGraph is in the call");
	else if (!c->run)
		cJSON_AddStringToObject(object, "reason", "no Run is in the call before the execution");
	return object;
}

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

static void add_parts(cJSON *object, const struct nps_tah_graph *g)
{
	cJSON *list = cJSON_AddObjectToObject(object, "parts");

	for (int part = 0; part < NPS_TAH_PARTS; part++) {
		const struct nps_tah_times *t = &g->parts[part];

		add_times(list, parts[part].key, &t->all);
		nps_find__number(cJSON_GetObjectItemCaseSensitive(list, parts[part].key), "share_of_steps",
				 g->step_ns ? (double)t->in_steps / g->step_ns : NPS_NAN);
	}
}

static void add_causes(cJSON *object, const struct nps_tah_graph *g)
{
	const struct nps_histogram *frontend = &g->parts[NPS_TAH_FRONTEND].all;
	cJSON *split = cJSON_AddObjectToObject(object, "frontend_split"), *causes;

	nps_find__number(split, "cache_lookup_us", g->cache / 1e3);
	nps_find__number(split, "guards_us", g->guards / 1e3);
	nps_find__number(split, "compiled_region_us", g->region / 1e3);
	nps_find__number(split, "rest_us",
			 nps_find__ns(g->cache + g->guards + g->region, frontend->total) / 1e3);
	causes = cJSON_AddObjectToObject(object, "python_causes");
	cJSON_AddNumberToObject(causes, "tensors_made", (double)g->tensors);
	nps_find__number(causes, "tensors_made_us", g->tensor_ns / 1e3);
	cJSON_AddNumberToObject(causes, "copies", (double)g->copies);
	nps_find__number(causes, "copies_us", g->copy_ns / 1e3);
	cJSON_AddNumberToObject(causes, "log_calls", (double)g->loggings);
	nps_find__number(causes, "log_calls_us", g->logging_ns / 1e3);
}

static cJSON *graph_object(const struct nps_model *m, const struct nps_tah_graph *g)
{
	cJSON *object = cJSON_CreateObject();
	char text[512];

	graph_name(m, g, text, sizeof(text));
	cJSON_AddStringToObject(object, "graph", text);
	cJSON_AddNumberToObject(object, "calls", (double)g->calls);
	cJSON_AddNumberToObject(object, "cold", (double)g->cold);
	cJSON_AddNumberToObject(object, "without_run", (double)g->without_run);
	cJSON_AddNumberToObject(object, "without_execute", (double)g->without_execute);
	if (g->mode != NPS_NONE)
		cJSON_AddStringToObject(object, "mode", nps_model__text(m, g->mode));
	add_times(object, "call", &g->whole);
	add_parts(object, g);
	nps_find__number(object, "residual_us", g->residual / 1e3);
	add_causes(object, g);
	add_times(object, "execute_to_first_launch", &g->launch);
	add_times(object, "execute_to_first_kernel", &g->kernel);
	nps_find__number(object, "device_us_per_call",
			 g->device_calls ? g->device_ns / 1e3 / g->device_calls : NPS_NAN);
	verdict(g, text, sizeof(text));
	cJSON_AddStringToObject(object, "verdict", text);
	cJSON_AddStringToObject(object, "advice", parts[largest_part(g)].advice);
	if (g->whole.count)
		cJSON_AddItemToObject(object, "slowest", call_object(m, &g->slowest));
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
			     call_object(find->model, &g->slowest),
			     "raise TorchAir's log level: at DEBUG it describes every input of every call",
			     "log calls take %.1f us within calls of %s", g->logging_ns / 1e3, name);
}

static int graph_findings(struct nps_find *find, const struct nps_tah_graph *g)
{
	double head = head_total(g) / 1e3;
	char name[512], text[512];
	cJSON *numbers;
	int err;

	if (!g->whole.count || find->span_us <= 0 || head < WORTH * find->span_us)
		return 0;
	graph_name(find->model, g, name, sizeof(name));
	verdict(g, text, sizeof(text));
	numbers = cJSON_CreateObject();
	cJSON_AddNumberToObject(numbers, "calls", (double)g->whole.count);
	nps_find__number(numbers, "head_us", head);
	add_parts(numbers, g);
	err = nps_find__add(find, "torchair_head", head / find->span_us, numbers,
			    call_object(find->model, &g->slowest), parts[largest_part(g)].advice,
			    "head overhead of compiled graph (%.*s) takes %.1f us in %llu calls; %s",
			    (int)nps_utf8_fit(name, 120), name, head, (unsigned long long)g->whole.count,
			    text);
	return err ? err : log_finding(find, g, name);
}

static int by_head(const void *a, const void *b)
{
	const struct nps_tah_graph *x = *(const struct nps_tah_graph *const *)a;
	const struct nps_tah_graph *y = *(const struct nps_tah_graph *const *)b;
	uint64_t p = head_total(x), q = head_total(y);

	return p != q ? (p < q ? 1 : -1) : (x > y) - (x < y);
}

static int report(struct nps_find *find, const struct nps_tah *tah)
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
	list = cJSON_AddArrayToObject(section, "rows");
	for (size_t i = 0; i < tah->calls.len; i++)
		cJSON_AddItemToArray(list,
				     call_object(find->model, &NPS_AT(&tah->calls, struct nps_tah_call, i)));
	qsort(sorted, n, sizeof(*sorted), by_head);
	for (size_t i = 0; !err && i < NPS_MIN(n, 5UL); i++)
		err = graph_findings(find, sorted[i]);
	return err;
}

int nps_find__torchair(struct nps_find *find)
{
	struct feed f = { .m = find->model };
	bool any = false;
	int err;

	nps_ext_sort__init(&f.spans, f.m->tmpfd, sizeof(struct row));
	err = nps_tah__init(&f.tah, f.m->tmpfd);
	if (!err)
		err = any_calls(&f, &any);
	if (!err && any)
		err = index_chains(&f);
	if (!err && any)
		err = sort_spans(&f);
	if (!err && any)
		err = merge(&f);
	if (!err && f.tah.ended)
		err = report(find, &f.tah);
	if (f.chained)
		nps_index__free(&f.chains);
	nps_ext_sort__free(&f.spans);
	nps_tah__free(&f.tah);
	free(f.ops);
	return err;
}
