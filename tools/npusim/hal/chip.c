/* SPDX-License-Identifier: BSD-2-Clause */
#include "chip.h"
#include "../abi/ascend_hal.h"

#include <stddef.h>
#include <string.h>

#define SYSTEM 0
#define APPLICATION 1

enum { B = 1, A = 2, P = 4, N = 8 }; /* 910B, 910A, 310P, 950 */

static const struct chip_channel channels[] = {
	{ CHANNEL_HBM, SYSTEM, A | B | N, "hbm" },
	{ CHANNEL_PCIE, SYSTEM, A | B | P | N, "pcie" },
	{ CHANNEL_NIC, SYSTEM, A | B, "nic" },
	{ CHANNEL_DDR, SYSTEM, A | P, "ddr" },
	{ CHANNEL_LLC, SYSTEM, A | B | P | N, "llc" },
	{ CHANNEL_HCCS, SYSTEM, A | B, "hccs" },
	{ CHANNEL_AICORE, APPLICATION, A | B | P, "aicore" },
	{ CHANNEL_TSFW, APPLICATION, A | B | P | N, "tsfw" },
	{ CHANNEL_HWTS_LOG, APPLICATION, A | P, "hwts_log" },
	{ CHANNEL_TSFW_L2, APPLICATION, A | B | P, "l2_cache" },
	{ CHANNEL_STARS_SOC_LOG, APPLICATION, B | N, "stars_soc_log_buffer" },
	{ CHANNEL_STARS_BLOCK_LOG, APPLICATION, B | N, "stars_block_log_buffer" },
	{ CHANNEL_STARS_SOC_PROFILE, SYSTEM, B | N, "stars_soc_profile_buffer" },
	{ CHANNEL_FFTS_PROFILE_TASK, APPLICATION, B | N, "ffts_profile_task" },
	{ CHANNEL_FFTS_PROFILE_SAMPLE, SYSTEM, B | N, "ffts_profile_sample" },
	{ CHANNEL_AIV, APPLICATION, B | P, "aiv" },
	{ CHANNEL_ROCE, SYSTEM, A | B, "roce" },
	{ CHANNEL_NPU_APP_MEM, SYSTEM, A | B | P | N, "npu_app_mem" },
	{ CHANNEL_NPU_MEM, SYSTEM, A | B | P | N, "npu_mem" },
	{ CHANNEL_LP, SYSTEM, B | P | N, "lp" },
	{ CHANNEL_QOS, SYSTEM, B | N, "qos" },
	{ CHANNEL_SOC_PMU, APPLICATION, B | N, "soc_pmu" },
	{ CHANNEL_NPU_MODULE_MEM, SYSTEM, A | B | N, "npu_module_mem" },
	{ CHANNEL_AICPU, APPLICATION, A | B | P | N, "aicpu" },
	{ CHANNEL_UB, SYSTEM, N, "ub" },
};

static const struct chip chips[] = {
	{ .name = "910B",
	  .chip_name = "910B3",
	  .soc = "Ascend910B3",
	  .platform = 5,
	  .version = 0x0320,
	  .counter_hz = 50000000,
	  .aicores = 24,
	  .vector_cores = 48,
	  .aicpus = 6,
	  .core_mhz = 1800,
	  .log = CHIP_STARS,
	  .pmu_events = 8,
	  .channels = B },
	{ .name = "910A",
	  .chip_name = "910A",
	  .soc = "Ascend910A",
	  .platform = 1,
	  .version = 0x0100,
	  .counter_hz = 100000000,
	  .aicores = 32,
	  .aicpus = 14,
	  .core_mhz = 1000,
	  .log = CHIP_HWTS,
	  .pmu_events = 8,
	  .channels = A },
	{ .name = "310P",
	  .chip_name = "310P3",
	  .soc = "Ascend310P3",
	  .platform = 4,
	  .version = 0x0200,
	  .counter_hz = 38400000,
	  .aicores = 8,
	  .vector_cores = 7,
	  .aicpus = 7,
	  .core_mhz = 1080,
	  .log = CHIP_HWTS,
	  .pmu_events = 8,
	  .channels = P },
	{ .name = "950",
	  .chip_name = "950PR",
	  .soc = "Ascend950PR_9599",
	  .platform = 15,
	  .version = 0x0600,
	  .counter_hz = 1000000000,
	  .aicores = 32,
	  .vector_cores = 64,
	  .aicpus = 6,
	  .core_mhz = 1650,
	  .log = CHIP_STARS2,
	  .pmu_events = 10,
	  .channels = N },
};

#define CHIPS (sizeof(chips) / sizeof(*chips))

const struct chip *chip_named(const char *name)
{
	for (size_t i = 0; i < CHIPS; i++) {
		if (!name || !*name || !strcmp(chips[i].name, name))
			return &chips[i];
	}
	return NULL;
}

const struct chip *chip_at(uint32_t index)
{
	return &chips[index % CHIPS];
}

uint32_t chip_index(const struct chip *chip)
{
	return (uint32_t)(chip - chips);
}

const struct chip_channel *chip_next_channel(const struct chip *chip, const struct chip_channel *after)
{
	const struct chip_channel *end = channels + sizeof(channels) / sizeof(*channels);

	for (const struct chip_channel *c = after ? after + 1 : channels; c < end; c++) {
		if (c->chips & chip->channels)
			return c;
	}
	return NULL;
}

const struct chip_channel *chip_channel(const struct chip *chip, uint32_t id)
{
	const struct chip_channel *c = NULL;

	while ((c = chip_next_channel(chip, c))) {
		if (c->id == id)
			return c;
	}
	return NULL;
}

enum chip_ids chip_ids_named(const struct chip *chip, const char *name)
{
	if (!name || chip->log != CHIP_STARS)
		return IDS_PLAIN;
	if (!strcmp(name, "mangled"))
		return IDS_MANGLED;
	return !strcmp(name, "expanded") || !strcmp(name, "software") ? IDS_EXPANDED : IDS_PLAIN;
}

/* Numbers of the 950. Its events are notifies of another kind, its copies to and from the host ASYNC_DMA. */
static enum stars_kind kind_950(uint8_t type, uint8_t own)
{
	switch (type) {
	case 0: /* AIC */
	case 1: /* AIV */
	case 2: /* FUSION */
		return STARS_AICORE;
	case 4:
	case 5:
		return STARS_AICPU;
	case 6:
		return own == STARS_EVENT_RECORD ? STARS_EVENT_RECORD : STARS_NOTIFY_RECORD;
	case 7:
		return own == STARS_EVENT_WAIT ? STARS_EVENT_WAIT : STARS_NOTIFY_WAIT;
	case 10:
		return STARS_PCIE_DMA;
	default:
		return (enum stars_kind)type;
	}
}

enum stars_kind chip_kind(const struct chip *chip, const struct stars_sqe *sqe)
{
	uint8_t type = sqe->type & STARS_TYPE_MASK;

	if (chip->log == CHIP_STARS2)
		return kind_950(type, sqe->own.kind);
	if (chip->log == CHIP_HWTS && type == 9)
		return STARS_SDMA;
	return (enum stars_kind)type;
}

uint16_t chip_ts_type(enum stars_kind kind)
{
	switch (kind) {
	case STARS_AICPU:
		return 1;
	case STARS_EVENT_RECORD:
		return 2;
	case STARS_EVENT_WAIT:
		return 3;
	case STARS_SDMA:
	case STARS_PCIE_DMA:
		return 5;
	case STARS_NOTIFY_WAIT:
		return 14;
	case STARS_NOTIFY_RECORD:
		return 15;
	case STARS_WRITE_VALUE:
		return 55;
	case STARS_PLACE_HOLDER:
		return STARS_FLIP;
	default:
		return 0;
	}
}
