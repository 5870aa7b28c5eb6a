/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of session.json (docs/session-format.md). */
#include <stdio.h>

#include "capture/agent_client.h"
#include "capture/capture_agents.h"
#include "capture/capture_parts.h"
#include "capture/channel_files.h"
#include "core/session_json.h"

static void add_left_out(const struct nps_process *p, cJSON *j)
{
	cJSON *list = cJSON_AddArrayToObject(j, "left_out");

	for (int what = 0; what < NPS_LEFT_KINDS; what++)
		if (p->budget.left_out >> what & 1)
			cJSON_AddItemToArray(list, cJSON_CreateString(nps_left_out__name(what)));
}

cJSON *nps_capture__describe_process(const struct nps_process *p)
{
	static const char *const sources[] = { [NPS_PROCESS_READ] = "proc",
					       [NPS_PROCESS_OF_PARENT] = "parent",
					       [NPS_PROCESS_UNREAD] = "kernel" };
	cJSON *j = cJSON_CreateObject();
	const char *prof = p->files ? nps_channel_files__dir(p->files) : NULL;
	bool delivered = nps_agent_client__delivered(p->agent) || nps_agent_client__delivered(p->former);
	char reason[160];

	cJSON_AddNumberToObject(j, "pid", p->pid);
	cJSON_AddNumberToObject(j, "ns_pid", p->ns_pid);
	cJSON_AddNumberToObject(j, "ppid", p->ppid);
	cJSON_AddItemToObject(j, "comm", nps_json_text(p->comm));
	cJSON_AddStringToObject(j, "known_from", sources[p->source]);
	cJSON_AddItemToObject(j, "cmdline", cJSON_Duplicate(p->cmdline, 1));
	if (p->host_name[0])
		cJSON_AddItemToObject(j, "host_name", nps_json_text(p->host_name));
	else
		cJSON_AddNullToObject(j, "host_name");
	nps_json__add_u64_or_null(j, "rank", p->rank >= 0, p->rank);
	nps_json__add_u64_or_null(j, "world_size", p->world_size >= 0, p->world_size);
	nps_json__add_u64(j, "start_monotonic", p->start_mono);
	nps_json__add_u64_or_null(j, "exit_monotonic", p->exit_mono, p->exit_mono);
	nps_json__add_u64_or_null(j, "exit_code", p->exit_mono && p->exit_code != NPS_EXIT_UNKNOWN,
				  p->exit_code);
	cJSON_AddItemToObject(j, "env", cJSON_Duplicate(p->env, 1));
	cJSON_AddStringToObject(j, "task_source", delivered ? "agent" : p->tapped ? "profiler" : "host");
	snprintf(reason, sizeof(reason), "%s", p->agent_reason);
	if (delivered || p->tapped)
		reason[0] = '\0';
	else if (p->agent && !reason[0])
		nps_agent_client__reason(p->agent, reason, sizeof(reason));
	cJSON_AddStringToObject(j, "task_source_reason", reason);
	if (prof)
		cJSON_AddStringToObject(j, "prof_dir", prof);
	else
		cJSON_AddNullToObject(j, "prof_dir");
	cJSON_AddStringToObject(j, "device_numbers", nps_process__foreign(p) ? "container" : "host");
	nps_json__add_u64(j, "agent_lost_bytes", nps_agents__lost(p));
	if (p->log_end)
		cJSON_AddStringToObject(j, "task_log_end", p->log_end);
	add_left_out(p, j);
	cJSON_AddRawToObject(j, "maps", p->maps ? p->maps : "[]");
	cJSON_AddItemToObject(j, "symbols", cJSON_Duplicate(p->symbols, 1));
	return j;
}
