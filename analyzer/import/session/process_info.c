/* SPDX-License-Identifier: BSD-2-Clause */
/* profiler_info_{rank}.json and profiler_metadata.json of a recorded process (outputs 5.3, 5.4). */
#include "import/session/import_process.h"

#include "import/session/session_reader.h"

#include "schema/tables.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aic_metric_rows.h"

struct loss_view {
	const struct nps_model *model;
	const struct nps_session *rec;
	const struct nps_proc *proc;
	uint32_t proc_row;
};

/* cJSON keeps numbers as doubles; this writes all digits of a ns time. */
static void add_u64(cJSON *object, const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cJSON_AddRawToObject(object, name, text);
}

static void add_env(cJSON *meta, const struct nps_proc *proc)
{
	static const char *const names[] = {
		"ASCEND_GLOBAL_LOG_LEVEL", "HCCL_RDMA_TC",	     "HCCL_RDMA_SL",
		"ACLNN_CACHE_LIMIT",	   "HOST_CACHE_CAPACITY",    "ASCEND_ENHANCE_ENABLE",
		"PYTORCH_NPU_ALLOC_CONF",  "ASCEND_LAUNCH_BLOCKING", "HCCL_ALGO"
	};
	const cJSON *have = cJSON_GetObjectItemCaseSensitive(proc->json, "env");
	cJSON *env = cJSON_AddObjectToObject(meta, "ENV_VARIABLES");

	for (size_t i = 0; i < NPS_ARRAY_SIZE(names); i++)
		cJSON_AddStringToObject(env, names[i], nps_json_str(have, names[i], ""));
}

static void info_add_losses(cJSON *own, const struct loss_view *r)
{
#define NAME(id, name, words) [id] = (name),
	static const char *const kinds[] = { NPS_EVENT_KINDS(NAME)[NPS_STR_TEXT] = "strings" };
#undef NAME
	const struct nps_losses *lost = &r->rec->losses;
	cJSON *drops = cJSON_AddObjectToObject(own, "drops");

	for (size_t i = 0; i < NPS_ARRAY_SIZE(kinds); i++)
		if (kinds[i] && (lost->ring[i] || i < NPS_EV_PYSTACK || i >= NPS_EV_KIND_MAX))
			add_u64(drops, kinds[i], lost->ring[i]);
	add_u64(drops, "agent_bytes", lost->agent_bytes);
	add_u64(drops, "truncated_submissions", lost->sqe);
	if (lost->uncertain)
		add_u64(drops, "submissions_in_doubt", lost->uncertain);
	add_u64(drops, "device_records", lost->device_records);
	add_u64(drops, "host_samples", lost->host);
	add_u64(drops, "device_samples", lost->device_samples);
	add_u64(drops, "events_of_too_many_processes", lost->pids);
}

/* What the capture cost the job, and when it stopped recording which parts because of their cost. */
static void add_cost(cJSON *own, const struct loss_view *r)
{
	const cJSON *cost = cJSON_GetObjectItemCaseSensitive(r->rec->json, "cost"), *from;
	const cJSON *percent = cJSON_GetObjectItemCaseSensitive(cost, "overhead_percent");
	cJSON *list;

	if (cJSON_IsNumber(percent))
		cJSON_AddNumberToObject(own, "overhead_percent_of_cpu_time", percent->valuedouble);
	/* The capture ended before the cost of a probe was measured. */
	if (cJSON_IsNumber(percent) && !strcmp(nps_json_str(cost, "source", ""), "estimated"))
		cJSON_AddTrueToObject(own, "overhead_is_estimated");
	if (!cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(cost, "given_up")))
		return;
	list = cJSON_AddArrayToObject(own, "given_up");
	cJSON_ArrayForEach(from, cJSON_GetObjectItemCaseSensitive(cost, "given_up"))
	{
		cJSON *to = cJSON_CreateObject();

		cJSON_AddItemToArray(list, to);
		cJSON_AddStringToObject(to, "what", nps_json_str(from, "what", "unknown"));
		add_u64(to, "since",
			nps_json_u64(from, "monotonic", r->rec->begin) + r->rec->begin_real - r->rec->begin);
	}
}

static void add_clocks(cJSON *own, const struct loss_view *r)
{
	cJSON *list = cJSON_AddArrayToObject(own, "device_clocks");

	for (size_t i = 0; i < r->rec->logs.len; i++) {
		const struct nps_device_log *log = &NPS_AT(&r->rec->logs, struct nps_device_log, i);
		cJSON *row;

		if (log->proc != r->proc_row)
			continue;
		row = cJSON_CreateObject();
		cJSON_AddItemToArray(list, row);
		cJSON_AddNumberToObject(row, "device", log->device);
		cJSON_AddBoolToObject(row, "fitted", log->fitted);
		add_u64(row, "samples", log->clock.samples);
		add_u64(row, "samples_used", log->clock.used);
		cJSON_AddNumberToObject(row, "drift_ppm", log->clock.drift_ppm);
		add_u64(row, "lines", log->clock.lines);
		add_u64(row, "lives", log->clock.nspans);
		add_u64(row, "marks", log->clock.marks);
		cJSON_AddNumberToObject(row, "error_us", log->clock.error / 1000);
		cJSON_AddNumberToObject(row, "worst_error_us", log->clock.worst / 1000);
		add_u64(row, "records", log->records);
		add_u64(row, "records_lost", log->lost);
		add_u64(row, "rounds_lost", log->rounds);
		add_u64(row, "tasks_without_start_or_end", log->incomplete);
		add_u64(row, "counters_of_no_task", log->stray_counters);
	}
}

/* Did an operator begin whose end was not probed, or was skipped by an exception? */
static bool has_bounded_operators(const struct nps_proc *proc)
{
	for (size_t i = 0; i < proc->cann.len; i++)
		if (NPS_AT(&proc->cann, struct nps_cann, i).ending == NPS_ENDING_LOWER_BOUND)
			return true;
	return false;
}

static cJSON *metadata(const struct loss_view *r)
{
	cJSON *meta = cJSON_CreateObject(), *own;
	const char *why = nps_json_str(r->proc->json, "task_source_reason", NULL);

	add_env(meta, r->proc);
	own = cJSON_AddObjectToObject(meta, "npuscope");
	cJSON_AddStringToObject(own, "version", nps_json_str(r->rec->json, "npuscope", "unknown"));
	cJSON_AddStringToObject(own, "task_source", nps_json_str(r->proc->json, "task_source", "host"));
	if (why)
		cJSON_AddStringToObject(own, "task_source_reason", why);
	cJSON_AddBoolToObject(own, "complete", r->rec->complete);
	cJSON_AddStringToObject(own, "end_reason", nps_json_str(r->rec->json, "end_reason", "unknown"));
	add_u64(own, "device_tasks", r->model->task.t.len);
	add_u64(own, "tasks_from_device_log", r->proc->matched + r->proc->unsubmitted);
	add_u64(own, "tasks_with_host_bounds_only", r->proc->bounded);
	add_u64(own, "tasks_submitted_before_capture", r->proc->unsubmitted);
	add_u64(own, "frees_of_memory_from_before_the_capture", r->proc->unknown_frees);
	if (r->proc->bounded)
		cJSON_AddStringToObject(
			own, "host_bounds_note",
			"tasks whose time_source is `host bounds` were not measured: their rows stand at the "
			"submission with a length of 1 ns, which is no duration; the bounds are in args and "
			"in NPUSCOPE_TASK_TIME");
	if (has_bounded_operators(r->proc))
		cJSON_AddStringToObject(own, "operator_end_note",
					"operators (acl rows named aclnn*) with the end `lower bound` were "
					"only seen to begin: "
					"their duration is a lower bound");
	add_clocks(own, r);
	info_add_losses(own, r);
	add_cost(own, r);
	return meta;
}

/* The counters of AI cores that the devices were really set to, in the words of the vendor's profiler. */
static const char *aic_metrics(const struct loss_view *r)
{
	static const char *const names[][2] = {
#define X(id, name, number) { name, number },
		NPS_AIC_METRIC_ROWS(X)
#undef X
	};
	const cJSON *sampler = cJSON_GetObjectItemCaseSensitive(r->rec->json, "device_sampler"), *device;
	const char *used = nps_json_str(sampler, "aic_metrics", "");

	cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(r->rec->json, "devices"))
	{
		uint64_t id = nps_json_u64(device, "id", NPS_MAX_DEVICES);

		if (id < NPS_MAX_DEVICES && r->proc->devices >> id & 1)
			used = nps_json_str(device, "aic_metrics", used);
	}
	for (size_t i = 1; i < NPS_ARRAY_SIZE(names); i++)
		if (!strcmp(used, names[i][0]))
			return names[i][1];
	return "ACL_AICORE_NONE";
}

static void add_flag(cJSON *object, const char *name, const cJSON *request, const char *key)
{
	cJSON_AddBoolToObject(object, name, cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(request, key)));
}

static cJSON *experimental(const struct loss_view *r)
{
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(r->rec->json, "request");
	const cJSON *host_sys = cJSON_GetObjectItemCaseSensitive(request, "host_sys");

	static const char *const levels[] = { "Level_none", "Level0", "Level1", "Level2" };
	cJSON *exp = cJSON_CreateObject();

	cJSON_AddStringToObject(exp, "_profiler_level", levels[nps_session__level(r->rec) + 1]);
	cJSON_AddStringToObject(exp, "_aic_metrics", aic_metrics(r));
	add_flag(exp, "_l2_cache", request, "l2_cache");
	add_flag(exp, "_msprof_tx", request, "mstx");
	add_flag(exp, "_mstx", request, "mstx");
	cJSON_AddFalseToObject(exp, "_data_simplification");
	cJSON_AddFalseToObject(exp, "record_op_args");
	cJSON_AddArrayToObject(exp, "_export_type"); /* the exporter knows */
	cJSON_AddFalseToObject(exp, "_op_attr");
	cJSON_AddNullToObject(exp, "_gc_detect_threshold");
	cJSON_AddItemToObject(exp, "_host_sys",
			      cJSON_IsArray(host_sys) ? cJSON_Duplicate(host_sys, 1) : cJSON_CreateArray());
	add_flag(exp, "_sys_io", request, "sys_io");
	add_flag(exp, "_sys_interconnection", request, "sys_interconnection");
	return exp;
}

/* The requested activities; both if the session does not list them. */
static void add_activities(cJSON *common, const struct loss_view *r)
{
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(r->rec->json, "request");
	const char *requested = nps_json_str(request, "activities", "cpu,npu");
	cJSON *list = cJSON_AddArrayToObject(common, "activities");

	while (*requested) {
		size_t len = strcspn(requested, ",");

		if (len == 3 && !strncmp(requested, "cpu", len))
			cJSON_AddItemToArray(list, cJSON_CreateString("ProfilerActivity.CPU"));
		else if (len == 3 && !strncmp(requested, "npu", len))
			cJSON_AddItemToArray(list, cJSON_CreateString("ProfilerActivity.NPU"));
		requested += len + (requested[len] == ',');
	}
}

static cJSON *info(const struct loss_view *r)
{
	/* Options that npuscope does not have are written as the profiler writes them when they are off. */
	static const char *const unused[] = { "with_stack", "with_flops", "with_modules" };
	const cJSON *request = cJSON_GetObjectItemCaseSensitive(r->rec->json, "request");
	cJSON *root = cJSON_CreateObject(), *config, *common, *start, *end;
	char rank[16];

	config = cJSON_AddObjectToObject(root, "config");
	common = cJSON_AddObjectToObject(config, "common_config");
	add_activities(common, r);
	cJSON_AddNullToObject(common, "schedule");
	add_flag(common, "record_shapes", request, "record_shapes");
	cJSON_AddBoolToObject(common, "profile_memory",
			      r->model->job_memory.t.len || r->model->npu_mem.t.len);
	for (size_t i = 0; i < NPS_ARRAY_SIZE(unused); i++)
		cJSON_AddFalseToObject(common, unused[i]);
	cJSON_AddItemToObject(config, "experimental_config", experimental(r));
	/* start_info relates a counter to time; ours are ns of CLOCK_MONOTONIC already. */
	start = cJSON_AddObjectToObject(root, "start_info");
	cJSON_AddFalseToObject(start, "syscnt_enable");
	cJSON_AddNumberToObject(start, "freq", 1000);
	add_u64(start, "start_cnt", r->rec->begin);
	add_u64(start, "start_monotonic", r->rec->begin);
	end = cJSON_AddObjectToObject(root, "end_info");
	add_u64(end, "collectionTimeEnd", r->model->end);
	add_u64(end, "MonotonicTimeEnd", r->model->end - (r->rec->begin_real - r->rec->begin));
	snprintf(rank, sizeof(rank), "%u", r->model->rank);
	cJSON_AddStringToObject(root, "rank_id", rank);
	return root;
}

int nps_import__process_info(struct nps_model *model, const struct nps_session *session, uint32_t proc_row)
{
	const struct loss_view view = { model, session, &session->procs[proc_row], proc_row };

	model->info = info(&view);
	model->metadata = metadata(&view);
	return model->info && model->metadata ? 0 : -ENOMEM;
}
