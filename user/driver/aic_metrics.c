/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/aic_metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "driver/device_info.h"

struct metric_names {
	const char *name, *number; /* in sample.json; in the profiler's enumeration */
};

static const struct metric_names metric_names[NPS_AIC_METRICS] = {
#define X(id, name, number) { name, number },
	NPS_AIC_METRIC_ROWS(X)
#undef X
};

_Static_assert(NPS_AIC_NONE == 0, "readers of the rows skip the first");

/* Chips with the same events: 910B has split cores, 950 has numbers of its own, the others are alike. */
enum family { SPLIT, LAST, ONE, FAMILIES };

/* 0 ends a list. */
struct events {
	uint16_t aic[NPS_AIC_EVENTS], aiv[NPS_AIC_EVENTS];
};

#define BOTH(...)                                                                                            \
	{                                                                                                    \
		{ __VA_ARGS__ },                                                                             \
		{                                                                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}

static const struct events sets[FAMILIES][NPS_AIC_METRICS] = {
	[SPLIT] = {
		[NPS_AIC_PIPE] = { { 0x416, 0x417, 0x9, 0x302, 0xc, 0x303, 0x54, 0x55 },
				   { 0x8, 0xa, 0x9, 0xb, 0xc, 0xd, 0x54, 0x55 } },
		[NPS_AIC_ARITHMETIC] = BOTH(0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f),
		[NPS_AIC_MEMORY] = BOTH(0x15, 0x16, 0x31, 0x32, 0xf, 0x10, 0x12, 0x13),
		[NPS_AIC_MEMORY_L0] = BOTH(0x1b, 0x1c, 0x21, 0x22, 0x27, 0x28, 0x29, 0x2a),
		[NPS_AIC_MEMORY_UB] = BOTH(0x37, 0x38, 0x43, 0x44),
		[NPS_AIC_CONFLICT] = BOTH(0x64, 0x65, 0x66),
		[NPS_AIC_L2_CACHE] = BOTH(0x500, 0x502, 0x504, 0x506, 0x508, 0x50a),
		[NPS_AIC_MEMORY_ACCESS] = BOTH(0x32, 0x3d, 0x3e, 0x206, 0x20c, 0x50c, 0x50d, 0x50e),
	},
	[LAST] = {
		[NPS_AIC_PIPE] = BOTH(0x501, 0x301, 0x1, 0x701, 0x202, 0x203, 0x714, 0x35, 0x34),
		[NPS_AIC_ARITHMETIC] = BOTH(0x323, 0x324),
		[NPS_AIC_MEMORY] = BOTH(0x570, 0x707, 0x709, 0x400, 0x401),
		[NPS_AIC_MEMORY_L0] = BOTH(0x304, 0x703, 0x306, 0x705, 0x712, 0x30a, 0x308),
		[NPS_AIC_MEMORY_UB] = BOTH(0x571, 0x572, 0x3, 0x5),
		[NPS_AIC_CONFLICT] = BOTH(0x540, 0x556, 0x528, 0x502),
	},
	[ONE] = {
		[NPS_AIC_PIPE] = BOTH(0x8, 0xa, 0x9, 0xb, 0xc, 0xd, 0x54, 0x55),
		[NPS_AIC_ARITHMETIC] = BOTH(0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f),
		[NPS_AIC_MEMORY] = BOTH(0x15, 0x16, 0x31, 0x32, 0xf, 0x10, 0x12, 0x13),
		[NPS_AIC_MEMORY_L0] = BOTH(0x1b, 0x1c, 0x21, 0x22, 0x27, 0x28, 0x29, 0x2a),
		[NPS_AIC_MEMORY_UB] = BOTH(0x37, 0x38, 0x43, 0x44),
		[NPS_AIC_CONFLICT] = BOTH(0x64, 0x65, 0x66),
	},
};

int nps_aic_metrics__parse(const char *text, enum nps_aic_metric *metric)
{
	for (int i = 0; i < NPS_AIC_METRICS; i++)
		if (!strcasecmp(text, metric_names[i].name) || !strcasecmp(text, metric_names[i].number)) {
			*metric = i;
			return 0;
		}
	return -EINVAL;
}

const char *nps_aic_metrics__name(enum nps_aic_metric metric)
{
	return metric == NPS_AIC_NONE ? "" : metric_names[metric].name;
}

size_t nps_aic_metrics__events(enum nps_aic_metric metric, uint32_t platform, int vector,
			       uint16_t events[NPS_AIC_EVENTS])
{
	enum nps_chip_generation generation = nps_generation_of(platform);
	enum family family = generation == NPS_GENERATION_SPLIT ? SPLIT
			     : generation == NPS_GENERATION_V6	? LAST
								: ONE;
	const uint16_t *from = vector ? sets[family][metric].aiv : sets[family][metric].aic;
	size_t n = 0;

	if (generation == NPS_GENERATION_UNKNOWN)
		return 0;
	for (; n < NPS_AIC_EVENTS && from[n]; n++)
		events[n] = from[n];
	return n;
}

/* PipeUtilization of chips with split cores: its events are those that the vendor's tables call Exct. */
static const char *name_of_events(enum nps_aic_metric metric, const uint16_t *events)
{
	return metric == NPS_AIC_PIPE && events[0] == 0x416 ? "PipeUtilizationExct"
							    : nps_aic_metrics__name(metric);
}

static void text_add(cJSON *json, const char *key, const char *value)
{
	if (!cJSON_HasObjectItem(json, key))
		cJSON_AddStringToObject(json, key, value);
}

void nps_aic_metrics__describe(enum nps_aic_metric metric, uint32_t platform, unsigned int period_ms,
			       cJSON *json)
{
	static const char *const keys[2][5] = { { "ai_core_profiling", "ai_core_profiling_mode",
						  "ai_core_metrics", "ai_core_profiling_events",
						  "aicore_sampling_interval" },
						{ "aiv_profiling", "aiv_profiling_mode", "aiv_metrics",
						  "aiv_profiling_events", "aiv_sampling_interval" } };

	for (int vector = 0; vector < 2; vector++) {
		uint16_t events[NPS_AIC_EVENTS];
		size_t n = nps_aic_metrics__events(metric, platform, vector, events);
		char text[96];

		if (!n)
			continue;
		nps_aic_metrics__text(events, n, text, sizeof(text));
		text_add(json, keys[vector][0], "on");
		text_add(json, keys[vector][1], period_ms ? "sample-based" : "task-based");
		text_add(json, keys[vector][2], name_of_events(metric, events));
		text_add(json, keys[vector][3], text);
		if (period_ms && !cJSON_HasObjectItem(json, keys[vector][4]))
			cJSON_AddNumberToObject(json, keys[vector][4], period_ms);
	}
}

void nps_aic_metrics__text(const uint16_t *events, size_t n, char *text, size_t size)
{
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < n && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s0x%x", i ? "," : "", events[i]);
}
