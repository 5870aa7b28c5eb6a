/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/task_channels.h"

#include <string.h>

#include "driver/device_info.h"

#define PERIOD_MS 20
#define TYPE_TS 0
#define CHIP(platform) (1ULL << (platform))
#define CHIP_950 (CHIP(NPS_PLATFORM_950) | CHIP(NPS_PLATFORM_950_1))
#define CHIPS_HWTS                                                                                           \
	(CHIP(NPS_PLATFORM_310) | CHIP(NPS_PLATFORM_910A) | CHIP(2) | CHIP(3) | CHIP(NPS_PLATFORM_310P))
#define CHIPS_ALL UINT64_MAX
#define ALMOST_FULL 26214 /* the value of the vendor's tools */

enum {
	CHANNEL_AICORE = 43,
	CHANNEL_TSFW = 44,
	CHANNEL_HWTS_LOG = 45,
	CHANNEL_HWTS_LOG1 = 48,
	CHANNEL_STARS_SOC_LOG = 50,
	CHANNEL_FFTS_PROFILE_TASK = 53,
	CHANNEL_AIV = 85,
	CHANNEL_AICPU = 143
};

/* The parameters of channels, 32-bit words unless noted. */
struct stars_log {
	uint32_t acsq_task, acc_pmu, cdqm, vpc, jpegd, jpege, ffts_context_task, ffts_block, sdma, tag,
		shrink;
};

struct ts_track {
	uint32_t period, task_track, cpu_usage, aicore, timeline, aivector, keypoint, memcpy, blocks;
};

struct old_pmu {
	uint32_t type, almost_full, period, core_mask, n, event[8], tag;
};

struct ffts_core {
	uint32_t type, period, core_mask, n;
	uint16_t event[8];
};

struct ffts_pmu {
	uint32_t mode; /* 1 AI cores, 2 vector cores, 3 both */
	struct ffts_core core[2];
	uint16_t tag, scale;
};

struct ffts_core_950 {
	uint32_t type, period, core_mask, n;
	uint16_t event[10];
};

struct ffts_pmu_950 {
	uint32_t mode;
	struct ffts_core_950 core[2];
	uint32_t tag, shrink, scale;
};

#define FFTS_BOTH 3
#define FFTS_TASKS 0x9 /* of tasks and of sub-tasks */
#define ALL_CORES UINT32_MAX

_Static_assert(sizeof(struct stars_log) == 44 && sizeof(struct ts_track) == 36, "parameters");
_Static_assert(sizeof(struct ffts_pmu_950) <= NPS_AGENT_PARA_MAX, "parameters");

static void want_add(struct nps_agent_want *want, unsigned int *n, uint32_t channel, uint64_t chips, bool log,
		     const void *data, size_t size)
{
	want[*n] = (struct nps_agent_want){ .channel = channel,
					    .type = TYPE_TS,
					    .period_ms = PERIOD_MS,
					    .size = (uint32_t)size,
					    .chips = chips,
					    .log = log };
	memcpy(want[(*n)++].data, data, size);
}

static void add_split(enum nps_aic_metric metric, struct nps_agent_want *want, unsigned int *n)
{
	struct ffts_pmu split = { .mode = FFTS_BOTH };
	struct ffts_pmu_950 last = { .mode = FFTS_BOTH };
	uint16_t events[NPS_AIC_EVENTS];

	for (int vector = 0; vector < 2; vector++) {
		struct ffts_core *core = &split.core[vector];
		struct ffts_core_950 *core_950 = &last.core[vector];
		size_t k = nps_aic_metrics__events(metric, NPS_PLATFORM_910B, vector, events);

		core->type = core_950->type = FFTS_TASKS;
		core->core_mask = core_950->core_mask = ALL_CORES;
		core->n = k < 8 ? (uint32_t)k : 8;
		memcpy(core->event, events, core->n * sizeof(*events));
		core_950->n = (uint32_t)nps_aic_metrics__events(metric, NPS_PLATFORM_950, vector, events);
		memcpy(core_950->event, events, core_950->n * sizeof(*events));
	}
	want_add(want, n, CHANNEL_FFTS_PROFILE_TASK, CHIP(NPS_PLATFORM_910B), false, &split, sizeof(split));
	want_add(want, n, CHANNEL_FFTS_PROFILE_TASK, CHIP_950, false, &last, sizeof(last));
}

static void add_counters(enum nps_aic_metric metric, struct nps_agent_want *want, unsigned int *n)
{
	struct old_pmu one = { .almost_full = ALMOST_FULL, .core_mask = ALL_CORES };
	uint16_t events[NPS_AIC_EVENTS];
	size_t k = nps_aic_metrics__events(metric, NPS_PLATFORM_910A, 0, events);

	add_split(metric, want, n);
	one.n = k < 8 ? (uint32_t)k : 8;
	for (uint32_t i = 0; i < one.n; i++)
		one.event[i] = events[i];
	want_add(want, n, CHANNEL_AICORE, CHIPS_HWTS, false, &one, sizeof(one));
	want_add(want, n, CHANNEL_AIV, CHIPS_HWTS, false, &one, sizeof(one));
}

unsigned int nps_task_channels(enum nps_aic_metric metric, struct nps_agent_want *want)
{
	const struct stars_log stars = { .acsq_task = 1, .ffts_context_task = 1 };
	/* If Stars logs the tasks, the scheduler is only needed for flips and blocks. */
	const struct ts_track track = { .period = PERIOD_MS, .keypoint = 1, .blocks = 1 };
	const struct ts_track track_all = {
		.period = PERIOD_MS, .task_track = 1, .keypoint = 1, .memcpy = 1, .blocks = 1
	};
	const uint32_t hwts = 0, aicpu = 0; /* tag */
	unsigned int n = 0;

	want_add(want, &n, CHANNEL_STARS_SOC_LOG, CHIPS_ALL, true, &stars, sizeof(stars));
	want_add(want, &n, CHANNEL_HWTS_LOG, CHIPS_HWTS, true, &hwts, sizeof(hwts));
	want_add(want, &n, CHANNEL_HWTS_LOG1, CHIPS_HWTS, false, &hwts, sizeof(hwts));
	want_add(want, &n, CHANNEL_TSFW, CHIPS_ALL & ~CHIPS_HWTS, false, &track, sizeof(track));
	want_add(want, &n, CHANNEL_TSFW, CHIPS_HWTS, false, &track_all, sizeof(track_all));
	want_add(want, &n, CHANNEL_AICPU, CHIPS_ALL, false, &aicpu, sizeof(aicpu));
	if (metric != NPS_AIC_NONE)
		add_counters(metric, want, &n);
	return n;
}
