/* SPDX-License-Identifier: BSD-2-Clause */
/* What each channel is: how it is started and what is written to it. */
#include "prof.h"

static bool always(const struct channel *c)
{
	(void)c;
	return true;
}

static bool never(const struct channel *c)
{
	(void)c;
	return false;
}

#define SAMPLED(id, config)                                                                                  \
	{                                                                                                    \
		id, PROF_PERIPHERAL_TYPE, config, never, NULL, samples_collect                               \
	}

static const struct channel_kind kinds[] = {
	{ CHANNEL_STARS_SOC_LOG, PROF_TS_TYPE, 4, always, tasklog_stars, NULL },
	{ CHANNEL_STARS_BLOCK_LOG, PROF_TS_TYPE, 0, always, tasklog_blocks, NULL },
	{ CHANNEL_HWTS_LOG, PROF_TS_TYPE, 0, always, tasklog_hwts, NULL },
	{ CHANNEL_TSFW, PROF_TS_TYPE, 36, always, tasklog_track, NULL },
	{ CHANNEL_TSFW_L2, PROF_TS_TYPE, 8, always, tasklog_l2, NULL },
	{ CHANNEL_SOC_PMU, PROF_TS_TYPE, 4, always, tasklog_soc_pmu, NULL },
	{ CHANNEL_AICPU, PROF_TS_TYPE, 0, always, tasklog_aicpu, NULL },
	{ CHANNEL_FFTS_PROFILE_TASK, PROF_TS_TYPE, 72, always, pmu_ffts_task, NULL },
	{ CHANNEL_FFTS_PROFILE_SAMPLE, PROF_TS_TYPE, 72, never, NULL, samples_collect },
	{ CHANNEL_AICORE, PROF_TS_TYPE, 52, pmu_is_per_task, pmu_aicore_task, samples_collect },
	{ CHANNEL_AIV, PROF_TS_TYPE, 52, pmu_is_per_task, pmu_aicore_task, samples_collect },
	{ CHANNEL_STARS_SOC_PROFILE, PROF_TS_TYPE, 48, never, NULL, samples_collect },
	SAMPLED(CHANNEL_HBM, 16),
	SAMPLED(CHANNEL_DDR, 16),
	SAMPLED(CHANNEL_LLC, 8),
	SAMPLED(CHANNEL_PCIE, 0),
	SAMPLED(CHANNEL_HCCS, 0),
	SAMPLED(CHANNEL_NIC, 0),
	SAMPLED(CHANNEL_ROCE, 0),
	SAMPLED(CHANNEL_QOS, 28),
	SAMPLED(CHANNEL_NPU_MEM, 16),
	SAMPLED(CHANNEL_NPU_APP_MEM, 16),
	SAMPLED(CHANNEL_NPU_MODULE_MEM, 16),
	SAMPLED(CHANNEL_LP, 8),
	SAMPLED(CHANNEL_UB, 0),
};

const struct channel_kind *channel_kind(uint32_t id)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (kinds[i].id == id)
			return &kinds[i];
	}
	return NULL;
}
