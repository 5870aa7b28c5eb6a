/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/trace/import_trace_types.h"

#include "base/util.h"

#include <string.h>

static const char *const computing[] = { "AI_CORE", "AI_VECTOR_CORE", "AI_CPU",	 "AIC",	    "AIV",
					 "AIV_SQE", "MIX_AIC",	      "MIX_AIV", "AICPU_H", "AICPU_D",
					 "FUSION",  "DSA_SQE",	      "DSA",	 "DVPP" };

/* From logs of tasks and of the runtime (prof-raw 2.0, 2.5). Others that end in _SQE are of this kind too. */
static const char *const other[] = { "Notify Wait",
				     "Notify Record",
				     "Write Value",
				     "SDMA",
				     "Data Context",
				     "Invalidate Data Context",
				     "Writeback Data Context",
				     "Load Context",
				     "UBDMA",
				     "ASYNCDMA",
				     "PCIE_DMA",
				     "CMO",
				     "CCU",
				     "CCU_LAUNCH",
				     "CONDITION",
				     "END",
				     "FFTS_PLUS",
				     "STARS_COMMON",
				     "PLACE_HOLDER",
				     "MAINTENANCE",
				     "CREATE_STREAM",
				     "BARRIER",
				     "WriteValueTask",
				     "MULTIPLE_TASK",
				     "TASK_SQE_UPDATE",
				     "HOSTFUNC_CALLBACK",
				     "REDUCE_ASYNC_V2",
				     "FLIP_TASK",
				     "NOP",
				     "N/A",
				     "UNKNOWN",
				     "" };

static const char *const prefixes[] = { "EVENT_",	"NOTIFY_",  "REMOTE_EVENT_", "MEMCPY_", "MEMSET_",
					"PROFIL",	"MODEL_",   "STREAM_",	     "LABEL_",	"RDMA_",
					"DAVID_EVENT_", "CAPTURE_", "IPC_EVENT_",    "MEM_",	"SQE_TYPE_" };

static bool text_is_listed(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], text))
			return true;
	return false;
}

static bool begins_as_other(const char *type)
{
	for (size_t i = 0; i < NPS_ARRAY_SIZE(prefixes); i++)
		if (!strncmp(type, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

enum nps_task_class nps_trace__task_class(const char *type, const char *name, bool *known)
{
	size_t len = strlen(type);

	*known = true;
	if (text_is_listed(computing, NPS_ARRAY_SIZE(computing), type) || !strncmp(type, "KERNEL_", 7))
		return NPS_CLASS_COMPUTE;
	if (!strcmp(name, "MEMCPY_ASYNC"))
		return NPS_CLASS_MEMCPY;
	if (!strcmp(name, "EVENT_RECORD") || !strcmp(name, "EVENT_WAIT"))
		return NPS_CLASS_EVENT;
	*known = text_is_listed(other, NPS_ARRAY_SIZE(other), type) || begins_as_other(type) ||
		 (len > 4 && !strcmp(type + len - 4, "_SQE"));
	return NPS_CLASS_OTHER;
}
