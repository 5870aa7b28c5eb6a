/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/task_types.h"

const char *nps_task_type(const struct nps_task *task)
{
	switch (task->core) {
	case NPS_SQE_AI_CORE:
		return "AI_CORE";
	case NPS_SQE_AI_CPU:
		return "AI_CPU";
	case NPS_SQE_AIV:
		return "AI_VECTOR_CORE";
	case NPS_SQE_PLACE_HOLDER:
		return "PLACE_HOLDER_SQE";
	case NPS_SQE_EVENT_RECORD:
		return "EVENT_RECORD_SQE";
	case NPS_SQE_EVENT_WAIT:
		return "EVENT_WAIT_SQE";
	case NPS_SQE_NOTIFY_RECORD:
		return "Notify Record";
	case NPS_SQE_NOTIFY_WAIT:
		return "Notify Wait";
	case NPS_SQE_WRITE_VALUE:
		return "Write Value";
	case NPS_SQE_SDMA:
		return task->kind == NPS_TASK_MEMCPY ? "SDMA_SQE" : "SDMA";
	case NPS_SQE_DSA:
		return "DSA_SQE";
	case NPS_SQE_PCIE_DMA:
		return "PCIE_DMA_SQE";
	case NPS_SQE_DVPP:
		return "DVPP";
	case NPS_SQE_CMO:
		return "CMO";
	case NPS_SQE_CCU:
		return "CCU";
	case NPS_SQE_CONDITION:
		return "CONDITION";
	case NPS_CORE_MIX_AIC:
		return "MIX_AIC";
	case NPS_CORE_MIX_AIV:
		return "MIX_AIV";
	}
	return "UNKNOWN";
}

const char *nps_task_host_type(const struct nps_task *task)
{
	if (task->kind == NPS_TASK_MEMCPY)
		return "MEMCPY_ASYNC";
	switch (task->core) {
	case NPS_SQE_AI_CORE:
		return "KERNEL_AICORE";
	case NPS_SQE_AI_CPU:
		return "KERNEL_AICPU";
	case NPS_SQE_AIV:
		return "KERNEL_AIVEC";
	case NPS_SQE_PLACE_HOLDER:
		return "PLACE_HOLDER";
	case NPS_SQE_EVENT_RECORD:
		return "EVENT_RECORD";
	case NPS_SQE_EVENT_WAIT:
		return "EVENT_WAIT";
	case NPS_SQE_DSA:
		return "STARS_COMMON";
	}
	return nps_task_type(task);
}

const char *nps_comm_task_type(const struct nps_task *task)
{
	switch (task->sqe_type) {
	case NPS_SQE_SDMA:
	case NPS_SQE_PCIE_DMA:
		return "Memcpy";
	case NPS_SQE_NOTIFY_WAIT:
		return "Notify_Wait";
	case NPS_SQE_NOTIFY_RECORD:
	case NPS_SQE_WRITE_VALUE:
		return "Notify_Record";
	}
	return nps_task_type(task);
}
