/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels of which the job told what they are before npuscope was attached. */
#include "session/import_process.h"

#include "session/session_reader.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>

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
	model->unnamed_kernels = addresses;
	model->shapeless_kernels = shapes && proc->unseen_executors ? empty : 0;
	if (addresses)
		nps_msg("process %u: %" PRIu64
			" of %zu kernels are named by their address: the job registered them before "
			"the capture began: record it from its start (record -- COMMAND) to have their names",
			proc->pid, addresses, t->t.len);
	if (model->shapeless_kernels)
		nps_msg("process %u: %" PRIu64
			" of %zu kernels have no shapes: the job had most of their executors in its cache "
			"before the capture began: record it from its start (record -- COMMAND) to have "
			"their shapes",
			proc->pid, empty, t->t.len);
}
