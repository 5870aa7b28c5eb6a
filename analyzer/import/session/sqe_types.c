/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/sqe_types.h"

#include "import/cann/control.h"
#include "import/session/session_model.h"

#define HWTS_SDMA 9

/* Numbers of the 950. Copies to and from the host are ASYNC_DMA's, on other chips PCIE_DMA's. */
static const uint8_t types_950[] = {
	[0] = NPS_SQE_AI_CORE,	     [1] = NPS_SQE_AIV,		[2] = NPS_SQE_AI_CORE,
	[3] = NPS_SQE_PLACE_HOLDER,  [4] = NPS_SQE_AI_CPU,	[5] = NPS_SQE_AI_CPU,
	[6] = NPS_SQE_NOTIFY_RECORD, [7] = NPS_SQE_NOTIFY_WAIT, [8] = NPS_SQE_WRITE_VALUE,
	[9] = NPS_SQE_SDMA,	     [10] = NPS_SQE_PCIE_DMA,	[11] = NPS_SQE_SDMA,
	[12] = NPS_SQE_DVPP,	     [13] = NPS_SQE_DVPP,	[14] = NPS_SQE_DVPP,
	[15] = NPS_SQE_CMO,	     [16] = NPS_SQE_CCU,	[17] = NPS_SQE_UNLISTED,
	[18] = NPS_SQE_UNLISTED,     [19] = NPS_SQE_UNLISTED,	[20] = NPS_SQE_CONDITION
};

uint8_t nps_sqe_type(uint32_t chip, uint8_t type)
{
	switch (chip) {
	case NPS_CHIP_950:
	case NPS_CHIP_950_1:
		if (type == NPS_SQE_INVALID)
			return type;
		return type < NPS_ARRAY_SIZE(types_950) ? types_950[type] : NPS_SQE_UNLISTED;
	case NPS_CHIP_310:
	case NPS_CHIP_910A:
	case 2:
	case 3:
	case NPS_CHIP_310P:
		return type == HWTS_SDMA ? NPS_SQE_SDMA : type;
	default:
		return type;
	}
}
