/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/cann/hardware.h"

static const char *const stars_types[] = { "AI_CORE",		"AI_CPU",	    "AIV_SQE",
					   "PLACE_HOLDER_SQE",	"EVENT_RECORD_SQE", "EVENT_WAIT_SQE",
					   "NOTIFY_RECORD_SQE", "NOTIFY_WAIT_SQE",  "WRITE_VALUE_SQE",
					   "VQ6_SQE",		"TOF_SQE",	    "SDMA_SQE",
					   "VPC_SQE",		"JPEGE_SQE",	    "JPEGD_SQE",
					   "DSA_SQE",		"ROCCE_SQE",	    "PCIE_DMA_SQE",
					   "HOST_CPU_SQE",	"CDQM_SQE",	    "C_CORE_SQE" };

static const char *const v6_types[] = { "AIC",
					"AIV",
					"FUSION",
					"PLACE_HOLDER_SQE",
					"AICPU_H",
					"AICPU_D",
					"NOTIFY_RECORD_SQE",
					"NOTIFY_WAIT_SQE",
					"WRITE_VALUE_SQE",
					"UBDMA",
					"ASYNCDMA",
					"SDMA_SQE",
					"VPC_SQE",
					"JPEGE_SQE",
					"JPEGD_SQE",
					"CMO",
					"CCU",
					NULL,
					NULL,
					NULL,
					"CONDITION",
					"END" };

static const char *const hwts_types[] = { "AI_CORE",	       "AI_CPU",	   "AIV_SQE",
					  "PLACE_HOLDER_SQE",  "EVENT_RECORD_SQE", "EVENT_WAIT_SQE",
					  "NOTIFY_RECORD_SQE", "NOTIFY_WAIT_SQE",  "WRITE_VALUE_SQE",
					  "SDMA_SQE" };

static const char *const context_types[] = { "AIC",
					     "AIV",
					     NULL,
					     "Notify Wait",
					     "Notify Record",
					     "Write Value",
					     "MIX_AIC",
					     "MIX_AIV",
					     "SDMA",
					     "Data Context",
					     "Invalidate Data Context",
					     "Writeback Data Context",
					     "AI_CPU",
					     "Load Context",
					     NULL,
					     "DSA_SQE" };

const char *nps_hardware_type(const struct nps_cann_run *run, bool v6)
{
	switch ((enum nps_run_source)run->source) {
	case NPS_RUN_STARS:
		if (v6)
			return run->type < NPS_ARRAY_SIZE(v6_types) ? v6_types[run->type] : NULL;
		return run->type < NPS_ARRAY_SIZE(stars_types) ? stars_types[run->type] : NULL;
	case NPS_RUN_CONTEXT:
		return run->type < NPS_ARRAY_SIZE(context_types) ? context_types[run->type] : NULL;
	case NPS_RUN_HWTS:
		return run->type < NPS_ARRAY_SIZE(hwts_types) ? hwts_types[run->type] : NULL;
	case NPS_RUN_TRACK:
	case NPS_RUN_BLOCK: /* none of the runs of tasks */
		break;
	}
	return NULL;
}

const char *nps_chip_name(uint32_t chip)
{
	switch (chip) {
	case NPS_CHIP_310:
		return "Ascend310";
	case NPS_CHIP_910A:
		return "Ascend910A";
	case NPS_CHIP_310P:
		return "Ascend310P";
	case NPS_CHIP_910B:
		return "Ascend910B";
	case NPS_CHIP_310B:
		return "Ascend310B";
	case NPS_CHIP_950:
	case NPS_CHIP_950_1:
		return "Ascend950";
	default:
		return "UNKNOWN";
	}
}
