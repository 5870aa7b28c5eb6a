/* SPDX-License-Identifier: BSD-2-Clause */
#include "findings/torchair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4096
#define DEPTH 2048 /* of a thread's stack */
#define GRAPHS 64
#define MARKS 64 /* of a thread that may belong to the next call */
#define PENDING 4096 /* calls whose kernels may still begin */
#define LAUNCHES 65536 /* of the latest, twice */

/* Something that has begun in a thread and not ended. */
struct open_span {
	uint64_t start, end;
	uint64_t ops_end; /* latest end of an operator in it that is over */
	uint32_t name, calls; /* calls: F that began in it */
	uint8_t kind;
};

/* A mark before a call that describes it. */
struct torchair_mark {
	uint64_t start, end;
	uint8_t kind;
};

struct torchair_thread {
	struct open_span *stack;
	uint32_t depth, room;
	struct torchair_mark marks[MARKS]; /* the latest, as a ring */
	uint32_t nmarks;
	uint64_t previous; /* end of the last call */
	uint64_t ops_end; /* as of open_span, outside all */
	uint64_t step; /* whose calls are counted */
	uint32_t step_calls;
	bool calling;
	struct nps_tah_call call; /* if calling */
};

/* A call whose work on the device may still begin. */
struct pending {
	uint64_t serial, execute;
	uint64_t first_launch, first_kernel, device_ns; /* as of the call */
	uint32_t graph, row; /* row: of calls, NPS_NONE not listed or not over */
	bool cold;
};

struct launch {
	uint64_t start, serial; /* of the call */
};

struct generation {
	struct nps_map rows; /* connection -> row of launches */
	struct launch *launches;
	uint32_t n;
};

struct nps_tah_recent {
	struct pending pending[PENDING]; /* by serial */
	struct generation generations[2]; /* [0] is being filled */
};

int nps_tah__init(struct nps_tah *tah, int dirfd)
{
	*tah = (struct nps_tah){ 0 };
	nps_vec__init(&tah->states, dirfd, sizeof(struct torchair_thread));
	nps_vec__init(&tah->graphs, dirfd, sizeof(struct nps_tah_graph));
	nps_vec__init(&tah->calls, dirfd, sizeof(struct nps_tah_call));
	tah->recent = calloc(1, sizeof(*tah->recent));
	return tah->recent ? 0 : -ENOMEM;
}

void nps_tah__free(struct nps_tah *tah)
{
	for (size_t i = 0; i < tah->states.len; i++)
		free(NPS_AT(&tah->states, struct torchair_thread, i).stack);
	for (int i = 0; tah->recent && i < 2; i++) {
		nps_map__free(&tah->recent->generations[i].rows);
		free(tah->recent->generations[i].launches);
	}
	free(tah->recent);
	nps_vec__free(&tah->states);
	nps_vec__free(&tah->graphs);
	nps_vec__free(&tah->calls);
	nps_map__free(&tah->threads);
	nps_map__free(&tah->graph_rows);
}

/* --- lengths -------------------------------------------------------------------------------------- */

bool nps_tah__part(const struct nps_tah_call *call, enum nps_tah_part part, uint64_t *ns)
{
	switch (part) {
	case NPS_TAH_FRONTEND:
		*ns = call->frontend ? call->start - call->frontend : 0;
		return call->frontend;
	case NPS_TAH_PYTHON:
		*ns = call->run ? call->run - call->start : 0;
		return call->run;
	case NPS_TAH_CPP:
		*ns = call->run && call->execute ? call->execute - call->run : 0;
		return call->run && call->execute;
	case NPS_TAH_GE:
		*ns = call->execute ? call->end - call->execute : 0;
		return call->execute;
	case NPS_TAH_PARTS:
		break;
	}
	return false;
}

uint64_t nps_tah__head(const struct nps_tah_call *call)
{
	return call->end - (call->frontend ? call->frontend : call->start);
}

/* --- a call ends ---------------------------------------------------------------------------------- */

static void graph_add_parts(struct nps_tah_graph *g, const struct nps_tah_call *c)
{
	uint64_t sum = 0, ns;

	if (c->step && g->last_step != c->step) {
		g->step_ns += c->step_ns;
		g->last_step = c->step;
	}
	for (int part = 0; part < NPS_TAH_PARTS; part++) {
		if (!nps_tah__part(c, part, &ns))
			continue;
		nps_histogram__add(&g->parts[part].all, ns);
		if (c->step)
			g->parts[part].in_steps += ns;
		sum += part == NPS_TAH_FRONTEND ? 0 : ns;
	}
	if (c->run && c->execute)
		g->residual = NPS_MAX(g->residual, c->end - c->start - sum);
	nps_histogram__add(&g->whole, c->end - c->start);
}

static void add_to_graph(struct nps_tah_graph *g, const struct nps_tah_call *c)
{
	g->calls++;
	g->mode = c->mode;
	if (c->cold) {
		g->cold++;
		return;
	}
	g->without_run += !c->run;
	g->without_execute += !c->execute;
	graph_add_parts(g, c);
	g->cache += c->cache;
	g->guards += c->guards;
	g->region += c->region;
	g->tensors += c->tensors;
	g->tensor_ns += c->tensor_ns;
	g->copies += c->copies;
	g->copy_ns += c->copy_ns;
	g->loggings += c->loggings;
	g->logging_ns += c->logging_ns;
	if (nps_tah__head(c) >= g->slowest_ns) {
		g->slowest_ns = nps_tah__head(c);
		g->slowest = *c;
	}
}

static int graph_call_end(struct nps_tah *tah, struct torchair_thread *t)
{
	struct nps_tah_call *c = &t->call, *listed;
	struct pending *p = &tah->recent->pending[c->serial % PENDING];

	t->calling = false;
	t->previous = c->end;
	if (c->execute)
		c->execute_end = NPS_MIN(c->execute_end, c->end);
	if (p->serial == c->serial) {
		c->first_launch = p->first_launch;
		c->first_kernel = p->first_kernel;
		c->device_ns = p->device_ns;
	}
	add_to_graph(&NPS_AT(&tah->graphs, struct nps_tah_graph, c->graph), c);
	tah->sinces[c->since]++;
	tah->ended++;
	if (tah->calls.len == NPS_TAH_LISTED)
		return 0;
	if (p->serial == c->serial)
		p->row = tah->calls.len;
	listed = nps_vec__push(&tah->calls);
	if (!listed)
		return -ENOMEM;
	*listed = *c;
	return 0;
}

/* --- a call begins -------------------------------------------------------------------------------- */

static bool is_frame(uint8_t kind)
{
	return kind == NPS_TAH_FRAME || kind == NPS_TAH_CALLER || kind == NPS_TAH_MODULE ||
	       kind == NPS_TAH_LOGGING;
}

/* Operators that are not Dynamo's own: what they end, the preparation of the next graph follows. */
static bool is_work(uint8_t kind)
{
	return !is_frame(kind) && kind != NPS_TAH_CACHE && kind != NPS_TAH_GUARDS && kind != NPS_TAH_REGION &&
	       kind != NPS_TAH_STEP && kind != NPS_TAH_COLD;
}

/* The graph with this identity; one too many share a row. */
static int find_graph(struct nps_tah *tah, uint32_t caller, uint32_t module, uint32_t ordinal, uint32_t *row)
{
	uint64_t key = nps_hash2((uint64_t)caller << 32 | module, ordinal);
	struct nps_tah_graph *g;

	*row = nps_map__get(&tah->graph_rows, key);
	if (*row != NPS_NONE)
		return 0;
	if (tah->graphs.len > GRAPHS) {
		*row = GRAPHS;
		return 0;
	}
	*row = tah->graphs.len;
	g = nps_vec__push(&tah->graphs);
	if (!g || nps_map__put(&tah->graph_rows, key, *row))
		return -ENOMEM;
	g->rest = *row == GRAPHS;
	g->caller = g->rest ? NPS_NONE : caller;
	g->module = g->rest ? NPS_NONE : module;
	g->ordinal = g->rest ? 0 : ordinal;
	g->mode = NPS_NONE;
	g->last_step = UINT64_MAX;
	return 0;
}

/*
 * Where the frontend of a call that begins at START begins: at the entry of the compiled module, or at the
 * end of the last operator or call in it; without a module at the end of the last call or the begin of the
 * step.
 */
static void find_frontend(const struct torchair_thread *t, uint32_t module, struct nps_tah_call *c)
{
	uint64_t from = 0;

	c->since = NPS_TAH_NOWHERE;
	if (module != NPS_NONE) {
		from = t->stack[module].start;
		for (uint32_t i = module; i < t->depth; i++)
			from = NPS_MAX(from, t->stack[i].ops_end);
		c->since = NPS_TAH_MODULE_ENTRY;
	} else {
		if (t->previous) {
			from = t->previous;
			c->since = NPS_TAH_PREVIOUS;
		}
		if (c->step > from) {
			from = c->step;
			c->since = NPS_TAH_STEP_START;
		}
	}
	c->frontend = NPS_MIN(from, c->start);
}

/* What was marked between the frontend's begin and the call. */
static void copy_marks(const struct torchair_thread *t, struct nps_tah_call *c)
{
	for (uint32_t i = 0; i < NPS_MIN(t->nmarks, (uint32_t)MARKS); i++) {
		const struct torchair_mark *m = &t->marks[i];
		uint64_t ns = nps_span(m->start, NPS_MIN(m->end, c->start));

		if (!c->frontend || m->start < c->frontend || m->start >= c->start)
			continue;
		c->cold |= m->kind == NPS_TAH_COLD;
		c->cache += m->kind == NPS_TAH_CACHE ? ns : 0;
		c->guards += m->kind == NPS_TAH_GUARDS ? ns : 0;
		c->region += m->kind == NPS_TAH_REGION ? ns : 0;
	}
}

static int graph_call_begin(struct nps_tah *tah, struct torchair_thread *t, const struct nps_tah_span *span)
{
	struct nps_tah_call *c = &t->call;
	uint32_t module = NPS_NONE, caller = span->caller, ordinal = 0, name = NPS_NONE;
	int err;

	*c = (struct nps_tah_call){ .thread = span->thread,
				    .start = span->start,
				    .end = span->end,
				    .mode = NPS_NONE,
				    .inputs = span->inputs,
				    .serial = tah->begun++ };
	if (c->start >= tah->step_start && c->start < tah->step_end) {
		c->step = tah->step_start;
		c->step_ns = tah->step_end - tah->step_start;
		c->crosses_step = c->end > tah->step_end;
	}
	for (uint32_t i = t->depth; i-- > 0;) {
		if (t->stack[i].kind == NPS_TAH_MODULE)
			module = i;
		else if (t->stack[i].kind == NPS_TAH_CALLER && caller == NPS_NONE)
			caller = t->stack[i].name;
	}
	find_frontend(t, module, c);
	copy_marks(t, c);
	if (module != NPS_NONE) {
		name = t->stack[module].name;
		ordinal = ++t->stack[module].calls;
	} else if (c->step && caller == NPS_NONE) {
		t->step_calls = t->step == c->step ? t->step_calls + 1 : 1;
		t->step = c->step;
		ordinal = t->step_calls;
	}
	t->calling = true;
	err = find_graph(tah, caller, name, ordinal, &c->graph);
	tah->recent->pending[c->serial % PENDING] =
		(struct pending){ .serial = c->serial, .graph = c->graph, .row = NPS_NONE };
	return err;
}

/* --- within a call -------------------------------------------------------------------------------- */

static bool within(const struct torchair_thread *t, uint8_t kind, uint8_t other)
{
	for (uint32_t i = t->depth; i-- > 0 && t->stack[i].start >= t->call.start;)
		if (t->stack[i].kind == kind || t->stack[i].kind == other)
			return true;
	return false;
}

/* Tensors and copies before the C++ part, each with all that it consists of. */
static void note_cause(struct torchair_thread *t, const struct nps_tah_span *span)
{
	struct nps_tah_call *c = &t->call;

	if (c->run_labelled || c->execute || within(t, NPS_TAH_TENSOR, NPS_TAH_COPY))
		return;
	if (span->kind == NPS_TAH_TENSOR) {
		c->tensors++;
		c->tensor_ns += nps_span(span->start, span->end);
	} else {
		c->copies++;
		c->copy_ns += nps_span(span->start, span->end);
	}
}

static void note_in_call(struct torchair_thread *t, const struct nps_tah_span *span)
{
	struct nps_tah_call *c = &t->call;

	switch (span->kind) {
	case NPS_TAH_RUN:
	case NPS_TAH_RUN_PLAIN:
		if (c->execute || (c->run_labelled && span->kind == NPS_TAH_RUN_PLAIN))
			break;
		c->run = span->start;
		c->run_labelled = span->kind == NPS_TAH_RUN;
		if (span->inputs != NPS_NONE)
			c->inputs = span->inputs;
		break;
	case NPS_TAH_EXECUTE:
		if (!c->execute) {
			c->execute = span->start;
			c->execute_end = span->end;
		}
		break;
	case NPS_TAH_COLD:
		c->cold = true;
		break;
	case NPS_TAH_MODE:
		c->mode = span->name;
		break;
	case NPS_TAH_TENSOR:
	case NPS_TAH_COPY:
		note_cause(t, span);
		break;
	case NPS_TAH_LOGGING:
		if (!within(t, NPS_TAH_LOGGING, NPS_TAH_LOGGING)) {
			c->loggings++;
			c->logging_ns += nps_span(span->start, span->end);
		}
		break;
	default:
		break;
	}
}

/* --- threads -------------------------------------------------------------------------------------- */

/* The state of thread ID in *T; NULL if there are too many. 0 or -ENOMEM. */
static int torchair_thread(struct nps_tah *tah, uint64_t id, struct torchair_thread **t)
{
	uint32_t row = nps_map__get(&tah->threads, id);

	*t = NULL;
	if (row == NPS_NONE && tah->states.len == THREADS)
		return 0;
	if (row == NPS_NONE) {
		*t = nps_vec__push(&tah->states);
		if (!*t || nps_map__put(&tah->threads, id, tah->states.len - 1))
			return -ENOMEM;
		return 0;
	}
	*t = &NPS_AT(&tah->states, struct torchair_thread, row);
	return 0;
}

/* What of thread T is over at TIME ends. */
static int thread_advance(struct nps_tah *tah, struct torchair_thread *t, uint64_t time)
{
	while (t->depth && t->stack[t->depth - 1].end <= time) {
		const struct open_span *s = &t->stack[--t->depth];
		uint64_t *around = t->depth ? &t->stack[t->depth - 1].ops_end : &t->ops_end;

		*around = NPS_MAX(*around, NPS_MAX(s->ops_end, is_work(s->kind) ? s->end : 0));
	}
	return t->calling && t->call.end <= time ? graph_call_end(tah, t) : 0;
}

static int thread_push(struct nps_tah *tah, struct torchair_thread *t, const struct nps_tah_span *span)
{
	if (t->depth == DEPTH) {
		tah->dropped++;
		return 0;
	}
	if (t->depth == t->room) {
		uint32_t room = t->room ? 2 * t->room : 16;
		struct open_span *stack = realloc(t->stack, room * sizeof(*stack));

		if (!stack)
			return -ENOMEM;
		t->stack = stack;
		t->room = room;
	}
	t->stack[t->depth++] = (struct open_span){
		.start = span->start, .end = span->end, .name = span->name, .kind = span->kind
	};
	return 0;
}

int nps_tah__span(struct nps_tah *tah, const struct nps_tah_span *span)
{
	struct torchair_thread *t;
	int err;

	if (span->end < span->start || !span->start)
		return 0;
	if (span->kind == NPS_TAH_STEP) {
		tah->step_start = span->start;
		tah->step_end = span->end;
	}
	if (span->thread == NPS_TAH_NO_THREAD)
		return 0;
	err = torchair_thread(tah, span->thread, &t);
	if (err || !t) {
		tah->dropped += !err;
		return err;
	}
	err = thread_advance(tah, t, span->start);
	if (!err && span->kind == NPS_TAH_CALL && !t->calling)
		err = graph_call_begin(tah, t, span);
	else if (!err && t->calling)
		note_in_call(t, span);
	else if (span->kind == NPS_TAH_CACHE || span->kind == NPS_TAH_GUARDS ||
		 span->kind == NPS_TAH_REGION || span->kind == NPS_TAH_COLD)
		t->marks[t->nmarks++ % MARKS] = (struct torchair_mark){ span->start, span->end, span->kind };
	return err ? err : thread_push(tah, t, span);
}

/* --- launches and kernels ------------------------------------------------------------------------- */

static int recent_remember(struct nps_tah_recent *recent, uint32_t connection, uint64_t start,
			   uint64_t serial)
{
	struct generation *g = &recent->generations[0];

	if (g->n == LAUNCHES) {
		struct generation old = recent->generations[1];

		recent->generations[1] = *g;
		*g = old;
		g->n = 0;
		nps_map__clear(&g->rows);
	}
	if (!g->launches)
		g->launches = calloc(LAUNCHES, sizeof(*g->launches));
	if (!g->launches)
		return -ENOMEM;
	g->launches[g->n] = (struct launch){ start, serial };
	return nps_map__put(&g->rows, connection, g->n++);
}

int nps_tah__launch(struct nps_tah *tah, uint64_t thread, uint64_t start, uint32_t connection)
{
	uint32_t row = nps_map__get(&tah->threads, thread);
	struct pending *p;
	struct torchair_thread *t;
	int err;

	if (row == NPS_NONE)
		return 0;
	t = &NPS_AT(&tah->states, struct torchair_thread, row);
	err = thread_advance(tah, t, start);
	if (err || !t->calling || !t->call.execute || start >= t->call.execute_end)
		return err;
	p = &tah->recent->pending[t->call.serial % PENDING];
	if (p->serial != t->call.serial)
		return 0; /* thousands of calls are open: this one is not tracked */
	p->execute = t->call.execute;
	p->cold = t->call.cold;
	return recent_remember(tah->recent, connection, start, t->call.serial);
}

static const struct launch *find_launch(const struct nps_tah_recent *recent, uint32_t connection)
{
	for (int i = 0; i < 2; i++) {
		const struct generation *g = &recent->generations[i];
		uint32_t row = nps_map__get(&g->rows, connection);

		if (row != NPS_NONE)
			return &g->launches[row];
	}
	return NULL;
}

void nps_tah__kernel(struct nps_tah *tah, uint32_t connection, uint64_t start, uint64_t end)
{
	const struct launch *launch = find_launch(tah->recent, connection);
	struct nps_tah_graph *g;
	struct pending *p;

	if (!launch)
		return;
	p = &tah->recent->pending[launch->serial % PENDING];
	if (p->serial != launch->serial)
		return;
	g = &NPS_AT(&tah->graphs, struct nps_tah_graph, p->graph);
	if (!p->first_kernel && !p->cold) {
		nps_histogram__add(&g->launch, nps_span(p->execute, launch->start));
		nps_histogram__add(&g->kernel, nps_span(p->execute, start));
		g->device_calls++;
	}
	if (!p->first_kernel) {
		p->first_launch = launch->start;
		p->first_kernel = start;
	}
	p->device_ns += nps_span(start, end);
	g->device_ns += p->cold ? 0 : nps_span(start, end);
	if (p->row != NPS_NONE) {
		struct nps_tah_call *c = &NPS_AT(&tah->calls, struct nps_tah_call, p->row);

		c->first_launch = p->first_launch;
		c->first_kernel = p->first_kernel;
		c->device_ns = p->device_ns;
	}
}

int nps_tah__finish(struct nps_tah *tah)
{
	int err = 0;

	for (size_t i = 0; !err && i < tah->states.len; i++)
		err = thread_advance(tah, &NPS_AT(&tah->states, struct torchair_thread, i), UINT64_MAX);
	return err;
}
