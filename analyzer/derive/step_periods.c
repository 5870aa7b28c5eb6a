/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps of a process without markers: the iterations that repeat in its kernels and collectives, in the order
 * of their submission, on the device that it launched most for. Streams are no part of it, as jobs may choose
 * another one each time.
 */
#include "base/index.h"
#include "base/map.h"
#include "derive/derive.h"
#include "derive/periods.h"
#include "derive/step_labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 64

struct step_launch {
	uint32_t symbol, device;
};

struct launch_walk {
	struct nps_model *m;
	struct nps_index calls; /* connection -> row of api */
	struct nps_map symbols; /* hash -> number */
	struct nps_vec texts; /* uint32_t by symbol: name of the kernel */
	struct nps_vec updates; /* uint8_t by symbol */
	struct nps_vec keys; /* struct nps_key: time, row of launches; then as many to sort them */
	struct nps_vec launches; /* struct step_launch */
	uint64_t counts[DEVICES];
	struct nps_vec sequence; /* uint32_t: symbols in order of submission */
	struct nps_vec times; /* uint64_t: theirs */
};

static bool has_word(const char *name, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

/*
 * Kernels that update parameters: of optimizers by name, and of their loops over all parameters. Other loops
 * over tensors are no updates: FSDP copies parameters in each layer, norms of gradients are of micro-batches.
 */
static bool updates_parameters(const char *name)
{
	static const char *const words[] = { "Adam",	       "SGD",	     "Momentum",
					     "Lamb",	       "Adagrad",    "Adadelta",
					     "RMSProp",	       "ForeachAdd", "ForeachLerp",
					     "GradientDescent" };

	return has_word(name, words, NPS_ARRAY_SIZE(words));
}

static int calls_index(struct launch_walk *w)
{
	const struct nps_api_table *api = &w->m->api;
	struct nps_pace pace = { w->m, 0 };
	uint64_t low = UINT64_MAX, high = 0;
	int err = 0;

	for (size_t i = 0; i < api->t.len; i++, nps_pace__step(&pace)) {
		if (api->connection[i] == NPS_NO_ID)
			continue;
		low = NPS_MIN(low, (uint64_t)api->connection[i]);
		high = NPS_MAX(high, (uint64_t)api->connection[i]);
	}
	nps_index__init(&w->calls, w->m->tmpfd, low, high, api->t.len);
	for (size_t i = 0; !err && i < api->t.len; i++, nps_pace__step(&pace))
		if (api->connection[i] != NPS_NO_ID &&
		    nps_index__get(&w->calls, api->connection[i]) == NPS_NONE)
			err = nps_index__put(&w->calls, api->connection[i], i);
	return err;
}

/* When the call of CONNECTION began, 0 unknown. */
static uint64_t call_time(const struct launch_walk *w, uint32_t connection)
{
	uint32_t row = connection == NPS_NO_ID ? NPS_NONE : nps_index__get(&w->calls, connection);

	return row == NPS_NONE ? 0 : w->m->api.start[row];
}

static int symbol_of(struct launch_walk *w, uint64_t hash, uint32_t text, uint32_t *symbol)
{
	uint32_t *added;
	uint8_t *updates;

	*symbol = nps_map__get(&w->symbols, hash);
	if (*symbol != NPS_NONE)
		return 0;
	*symbol = w->texts.len;
	added = nps_vec__push(&w->texts);
	updates = nps_vec__push(&w->updates);
	if (!added || !updates)
		return -ENOMEM;
	*added = text;
	*updates = updates_parameters(nps_model__text(w->m, text));
	return nps_map__put(&w->symbols, hash, *symbol);
}

static int launch_add(struct launch_walk *w, uint64_t time, uint64_t hash, uint32_t text,
		      struct step_launch launch)
{
	struct nps_key *key;
	struct step_launch *row;
	int err = symbol_of(w, hash, text, &launch.symbol);

	if (err)
		return err;
	key = nps_vec__push(&w->keys);
	row = nps_vec__push(&w->launches);
	if (!key || !row)
		return -ENOMEM;
	*key = (struct nps_key){ .key = time, .row = w->launches.len - 1 };
	*row = launch;
	w->counts[launch.device % DEVICES]++;
	return 0;
}

static int kernels_collect(struct launch_walk *w)
{
	const struct nps_compute_table *compute = &w->m->compute;
	const struct nps_task_table *task = &w->m->task;
	struct nps_pace pace = { w->m, 0 };
	int err = 0;

	for (size_t i = 0; !err && i < compute->t.len; i++, nps_pace__step(&pace)) {
		uint32_t at = compute->task[i], text = compute->name[i];
		uint64_t time;

		if (at >= task->t.len || task->model[at] != NPS_NO_ID)
			continue;
		/* Kernels belong to the step in which their call began. */
		time = call_time(w, task->connection[at]);
		if (!time)
			time = task->submit[at];
		if (time)
			err = launch_add(w, time, nps_hash2(text, compute->type[i]), text,
					 (struct step_launch){ .device = task->device[at] });
	}
	return err;
}

/* A collective is its type and about how much it moves: its name has a number of its own. */
static int collectives_collect(struct launch_walk *w)
{
	const struct nps_comm_op_table *op = &w->m->comm_op;
	int err = 0;

	for (size_t i = 0; !err && i < op->t.len; i++) {
		uint64_t time = op->model[i] == NPS_NO_ID ? call_time(w, op->connection[i]) : 0;
		uint32_t size = op->count[i] > 0 ? 64 - __builtin_clzll(op->count[i]) : 0;

		if (time)
			err = launch_add(w, time, nps_hash2(op->type[i], (uint64_t)size << 32 | 1),
					 op->type[i], (struct step_launch){ .device = op->device[i] });
	}
	return err;
}

static uint32_t most_used_device(const struct launch_walk *w)
{
	uint32_t most = 0;

	for (uint32_t d = 1; d < DEVICES; d++)
		if (w->counts[d] > w->counts[most])
			most = d;
	return most;
}

static int sequence_make(struct launch_walk *w)
{
	uint32_t device = most_used_device(w);
	size_t n = w->keys.len, len = 0;
	int err = nps_vec__resize(&w->keys, 2 * n);
	struct nps_key *keys = w->keys.data;

	err = err ? err : nps_vec__resize(&w->sequence, w->counts[device]);
	err = err ? err : nps_vec__resize(&w->times, w->counts[device]);
	if (err || !n)
		return err;
	nps_sort_keys(keys, keys + n, n);
	for (size_t i = 0; i < n; i++) {
		const struct step_launch *launch = &NPS_AT(&w->launches, struct step_launch, keys[i].row);

		if (launch->device % DEVICES != device)
			continue;
		NPS_AT(&w->sequence, uint32_t, len) = launch->symbol;
		NPS_AT(&w->times, uint64_t, len++) = keys[i].key;
	}
	return 0;
}

/* --- rows ---------------------------------------------------------------------------------------------- */

/* What an iteration does, by the names of its kernels. */
static const char *step_role(const struct launch_walk *w, const struct nps_period_step *step)
{
	static const char *const prefill[] = { "PromptFlashAttention" };
	static const char *const decode[] = { "IncreFlashAttention", "PagedAttention" };
	const char *role = NULL;

	for (size_t i = step->first; i < step->end; i++) {
		uint32_t symbol = NPS_AT(&w->sequence, uint32_t, i);
		const char *name;

		if (NPS_AT(&w->updates, uint8_t, symbol))
			return "training";
		name = nps_model__text(w->m, NPS_AT(&w->texts, uint32_t, symbol));
		if (has_word(name, prefill, NPS_ARRAY_SIZE(prefill)))
			role = "prefill";
		else if (!role && has_word(name, decode, NPS_ARRAY_SIZE(decode)))
			role = "decode";
	}
	return role;
}

static int row_add(struct launch_walk *w, const struct nps_step_row *step,
		   const struct nps_period_step *found, uint32_t role)
{
	struct nps_found_step_row row = { .id = step->id,
					  .start = step->start,
					  .end = step->end,
					  .confidence = w->m->step_confidence,
					  .kind = found->kind,
					  .role = role,
					  .irregular = found->irregular };
	int err = nps_step_table__add(&w->m->step, step);

	row.source = nps_model__intern(w->m, "period", &err);
	return err ? err : nps_found_step_table__add(&w->m->found_step, &row);
}

/* A step ends where the next one begins, or after its last launch. */
static int rows_add(struct launch_walk *w, const struct nps_periods *found)
{
	const struct nps_period_step *steps = found->steps.data;
	const uint64_t *times = w->times.data;
	uint32_t *roles = malloc((found->kinds + 1) * sizeof(*roles)), known = 0;
	int err = roles ? 0 : -ENOMEM;

	if (roles)
		roles[0] = NPS_NONE;
	for (size_t i = 0; !err && i < found->steps.len; i++) {
		bool last = i + 1 == found->steps.len || steps[i + 1].first != steps[i].end;
		struct nps_step_row row = { .id = (int64_t)i,
					    .start = times[steps[i].first],
					    .end = last ? times[steps[i].end - 1] + 1 : times[steps[i].end] };

		if (steps[i].kind > known) { /* kinds are numbered by first appearance */
			const char *role = step_role(w, &steps[i]);

			roles[++known] = role ? nps_model__intern(w->m, role, &err) : NPS_NONE;
		}
		err = err ? err : row_add(w, &row, &steps[i], roles[steps[i].kind]);
	}
	free(roles);
	return err;
}

static int periods_find(struct launch_walk *w)
{
	struct nps_model *m = w->m;
	struct nps_period_input input = { .symbols = w->sequence.data,
					  .times = w->times.data,
					  .len = w->sequence.len,
					  .updates = w->updates.data,
					  .nsymbols = w->texts.len,
					  .dirfd = m->tmpfd };
	struct nps_periods found;
	int err = nps_periods__find(&input, &found);

	if (!err && found.reason && m->step_source == NPS_STEPS_PERIOD)
		nps_msg("no steps: of the %zu launches of process %u: %s (confidence %.2f): name a function "
			"with record --step-marker",
			w->sequence.len, m->pid, found.reason, found.confidence);
	m->steps_found = !err && found.steps.len;
	m->step_confidence = found.confidence;
	if (m->steps_found)
		err = rows_add(w, &found);
	if (!err && m->steps_found)
		err = nps_step_metadata__set(m, "period");
	nps_periods__free(&found);
	return err;
}

static void walk_init(struct launch_walk *w, struct nps_model *m)
{
	*w = (struct launch_walk){ .m = m };
	nps_index__init(&w->calls, m->tmpfd, 0, 0, 0);
	nps_vec__init(&w->texts, m->tmpfd, sizeof(uint32_t));
	nps_vec__init(&w->updates, m->tmpfd, sizeof(uint8_t));
	nps_vec__init(&w->keys, m->tmpfd, sizeof(struct nps_key));
	nps_vec__init(&w->launches, m->tmpfd, sizeof(struct step_launch));
	nps_vec__init(&w->sequence, m->tmpfd, sizeof(uint32_t));
	nps_vec__init(&w->times, m->tmpfd, sizeof(uint64_t));
}

static void walk_free(struct launch_walk *w)
{
	nps_index__free(&w->calls);
	nps_map__free(&w->symbols);
	nps_vec__free(&w->texts);
	nps_vec__free(&w->updates);
	nps_vec__free(&w->keys);
	nps_vec__free(&w->launches);
	nps_vec__free(&w->sequence);
	nps_vec__free(&w->times);
}

/* Steps that were imported, and what was imported of them, are left out. */
static int steps_clear(struct nps_model *m)
{
	int err = nps_table__resize(&m->step.t, 0);

	if (!m->step_traced)
		return err;
	m->step_traced = false;
	return err ? err : nps_table__resize(&m->step_trace.t, 0);
}

static bool wants_periods(const struct nps_model *m)
{
	return m->step_source == NPS_STEPS_AUTO || m->step_source == NPS_STEPS_PERIOD;
}

int nps_derive__step_periods(struct nps_model *m)
{
	struct launch_walk w;
	int err;

	if (m->step_source == NPS_STEPS_MARKER || (m->step_source == NPS_STEPS_AUTO && m->step.t.len))
		return 0;
	err = steps_clear(m);
	if (err || m->step_source == NPS_STEPS_NONE)
		return err;
	walk_init(&w, m);
	err = calls_index(&w);
	err = err ? err : kernels_collect(&w);
	err = err ? err : collectives_collect(&w);
	err = err ? err : sequence_make(&w);
	nps_index__cool(&w.calls);
	if (!err && m->step_source != NPS_STEPS_PERIOD)
		err = nps_step_labels__fill(m, w.times.data, w.times.len);
	if (!err && !m->step.t.len && wants_periods(m))
		err = periods_find(&w);
	walk_free(&w);
	return err;
}
