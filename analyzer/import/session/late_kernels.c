/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels of which the capture has no name or no operands, and why. */
#include "import/session/import_process.h"

#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Appends a cause to WHY of SIZE bytes. */
__attribute__((format(printf, 3, 4))) static void add_cause(char *why, size_t size, const char *fmt, ...)
{
	size_t len = strlen(why);
	va_list ap;

	if (len)
		len += (size_t)snprintf(why + len, size - len, "; ");
	if (len >= size)
		return;
	va_start(ap, fmt);
	vsnprintf(why + len, size - len, fmt, ap);
	va_end(ap);
}

/* Whether WHAT was given up to stay below --max-overhead. */
static bool was_dropped(const struct nps_session *rec, const char *what)
{
	const cJSON *cost = cJSON_GetObjectItemCaseSensitive(rec->json, "cost"), *item;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(cost, "given_up"))
	{
		const char *name = nps_json_str(item, "what", "");

		if (!strcmp(name, what) || !strcmp(name, "all"))
			return true;
	}
	return false;
}

/* How many records were lost that have names of kernels, or their operands. */
static uint64_t lost(const struct nps_session *rec, bool operands)
{
	const struct nps_losses *l = &rec->losses;
	uint64_t n = nps_add_sat(l->ring[NPS_EV_MARK], l->ring[NPS_STR_TEXT]);

	return operands ? nps_add_sat(n, l->ring[NPS_EV_TENSOR]) : n;
}

/* Was the job there before npuscope? One that `record -- COMMAND` starts is idle until it is watched. */
static bool was_there(const struct nps_session *rec, const struct nps_proc *proc)
{
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(rec->json, "request");
	const cJSON *pids = cJSON_GetObjectItemCaseSensitive(request, "pids");
	const cJSON *window = cJSON_GetObjectItemCaseSensitive(rec->json, "capture");
	bool started = cJSON_IsArray(pids) && !cJSON_GetArraySize(pids) &&
		       !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(request, "all"));

	return !started && nps_json_u64(proc->json, "start_monotonic", 0) <=
				   nps_json_u64(window, "begin_monotonic", UINT64_MAX);
}

static void why_add_losses(char *why, size_t size, uint64_t n)
{
	if (n)
		add_cause(why, size, "%" PRIu64 " records were lost (--ring-size)", n);
}

static void causes_of_names(struct nps_model *m, const struct nps_session *rec, bool before)
{
	size_t size = sizeof(m->why_unnamed);

	if (before)
		add_cause(m->why_unnamed, size, "the job registered them before npuscope was attached to it");
	if (was_dropped(rec, "names"))
		add_cause(m->why_unnamed, size, "names of kernels were given up (--max-overhead)");
	why_add_losses(m->why_unnamed, size, lost(rec, false));
	if (!*m->why_unnamed)
		add_cause(m->why_unnamed, size,
			  "what registered them was not probed yet, or not by npuscope");
}

/* Losses are those of all processes: they explain nothing of a process that has all first phases. */
static void causes_of_shapes(struct nps_model *m, const struct nps_session *rec, const struct nps_proc *proc,
			     bool before)
{
	bool dropped = was_dropped(rec, "names") || was_dropped(rec, "detail");
	size_t size = sizeof(m->why_shapeless);
	uint64_t n = lost(rec, true);

	if (proc->unseen_executors)
		add_cause(m->why_shapeless, size,
			  "the job's cache of executors answered %" PRIu64
			  " times with one from before npuscope was attached to it",
			  proc->unseen_executors);
	if (before && proc->unseen_phases && !n && !dropped)
		add_cause(m->why_shapeless, size,
			  "%" PRIu64
			  " executors ran whose first phase came before npuscope was attached to it",
			  proc->unseen_phases);
	if (dropped)
		add_cause(m->why_shapeless, size, "their records were given up (--max-overhead)");
	if (proc->unseen_executors || proc->unseen_phases)
		why_add_losses(m->why_shapeless, size, n);
}

void nps_late_kernels__count(struct nps_model *model, const struct nps_session *rec,
			     const struct nps_proc *proc)
{
	static const char unnamed[] = "kernel@0x";
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(rec->json, "request");
	bool shapes = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(request, "record_shapes"));
	const struct nps_compute_table *t = &model->compute;
	struct nps_pace pace = { .model = model };
	uint64_t addresses = 0, empty = 0;
	bool before = was_there(rec, proc);
	const char *advice = before ? ": record it from its start (record -- COMMAND) to have all" : "";

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace)) {
		addresses += !strncmp(nps_model__text(model, t->name[i]), unnamed, sizeof(unnamed) - 1);
		empty += t->input_shapes[i] == NPS_NONE && t->output_shapes[i] == NPS_NONE;
	}
	causes_of_names(model, rec, before);
	causes_of_shapes(model, rec, proc, before);
	model->unnamed_kernels = addresses;
	/* Of other kernels no capture could decide which tensors are whose. */
	model->shapeless_kernels = shapes && *model->why_shapeless ? empty : 0;
	if (addresses)
		nps_msg("process %u: %" PRIu64 " of %zu kernels are named by their address: %s%s", proc->pid,
			addresses, t->t.len, model->why_unnamed, advice);
	if (model->shapeless_kernels)
		nps_msg("process %u: %" PRIu64 " of %zu kernels have no shapes: %s%s", proc->pid, empty,
			t->t.len, model->why_shapeless, advice);
}
