/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels of which the capture does not tell what they are, or what they were given, and why. */
#include "session/import_process.h"

#include "session/session_reader.h"

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
static bool gave_up(const struct nps_recording *rec, const char *what)
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

/* How many records are lost that name kernels, or tell their operands. */
static uint64_t lost(const struct nps_recording *rec, bool operands)
{
	const struct nps_losses *l = &rec->losses;
	uint64_t n = nps_add_sat(l->ring[NPS_EV_MARK], l->ring[NPS_STR_TEXT]);

	return operands ? nps_add_sat(n, l->ring[NPS_EV_TENSOR]) : n;
}

static void causes(struct nps_model *m, const struct nps_recording *rec, const struct nps_proc *proc)
{
	bool names = gave_up(rec, "names");
	uint64_t n;

	add_cause(m->why_unnamed, sizeof(m->why_unnamed),
		  "the job registered them before npuscope was attached to it");
	if (names)
		add_cause(m->why_unnamed, sizeof(m->why_unnamed),
			  "names of kernels were given up (--max-overhead)");
	n = lost(rec, false);
	if (n)
		add_cause(m->why_unnamed, sizeof(m->why_unnamed),
			  "%" PRIu64 " records were lost (--ring-size)", n);

	if (proc->unseen_executors)
		add_cause(m->why_shapeless, sizeof(m->why_shapeless),
			  "the job's cache of executors answered %" PRIu64
			  " times with one from before npuscope was attached to it",
			  proc->unseen_executors);
	n = lost(rec, true);
	if (proc->unseen_phases && !n && !names)
		add_cause(m->why_shapeless, sizeof(m->why_shapeless),
			  "%" PRIu64
			  " executors ran whose first phase came before npuscope was attached to it",
			  proc->unseen_phases);
	if (names || gave_up(rec, "detail"))
		add_cause(m->why_shapeless, sizeof(m->why_shapeless),
			  "what tells them was given up (--max-overhead)");
	if (n)
		add_cause(m->why_shapeless, sizeof(m->why_shapeless),
			  "%" PRIu64 " records were lost (--ring-size)", n);
}

void nps_late_kernels__count(struct nps_model *model, const struct nps_recording *rec,
			     const struct nps_proc *proc)
{
	static const char unnamed[] = "kernel@0x";
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(rec->json, "request");
	bool shapes = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(request, "record_shapes"));
	const struct nps_compute_table *t = &model->compute;
	struct nps_pace pace = { .model = model };
	uint64_t addresses = 0, empty = 0;

	for (size_t i = 0; i < t->t.len; i++, nps_pace__step(&pace)) {
		addresses += !strncmp(nps_model__text(model, t->name[i]), unnamed, sizeof(unnamed) - 1);
		empty += t->input_shapes[i] == NPS_NONE && t->output_shapes[i] == NPS_NONE;
	}
	causes(model, rec, proc);
	model->unnamed_kernels = addresses;
	/* Of the others it is not decided which tensors are whose, which no other capture would tell either. */
	model->shapeless_kernels = shapes && *model->why_shapeless ? empty : 0;
	if (addresses)
		nps_msg("process %u: %" PRIu64
			" of %zu kernels are named by their address: %s: record it from its start "
			"(record -- COMMAND) to have their names",
			proc->pid, addresses, t->t.len, model->why_unnamed);
	if (model->shapeless_kernels)
		nps_msg("process %u: %" PRIu64
			" of %zu kernels have no shapes: %s: record it from its start (record -- COMMAND) to "
			"have their shapes",
			proc->pid, empty, t->t.len, model->why_shapeless);
}
