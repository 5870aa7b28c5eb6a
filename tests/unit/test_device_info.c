/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which generation a device is of, by all that a driver may report of it,
 * and what is queried of an unknown one.
 */
#include "capture/task_channels.h"
#include "driver/device_info.h"
#include "driver/device_lib.h"
#include "sources/device/device_channels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

static struct {
	const char *name; /* NULL: the driver has none */
	int64_t version;
	int list_error;
	uint32_t list_chip;
	unsigned int lists;
} driver;

static int fake_exchange(const struct nps_device_lib *of, enum nps_worker_library library,
			 const struct nps_worker_request *r, const void *payload,
			 struct nps_worker_reply *reply, void *data)
{
	struct nps_prof_channels *list = data;

	(void)of;
	(void)payload;
	assert_int_equal(library, NPS_WORKER_HAL);
	*reply = (struct nps_worker_reply){ .op = r->op };
	switch (r->op) {
	case NPS_WORKER_DEVICE_INFO:
		reply->value = r->kind == 0 && r->info == 1 ? driver.version : 100;
		break;
	case NPS_WORKER_CHIP_NAME:
		reply->code = driver.name ? 0 : 3;
		reply->size = NPS_CHIP_TEXT;
		strncpy(data, driver.name ? driver.name : "", NPS_CHIP_TEXT);
		break;
	case NPS_WORKER_GET_CHANNELS:
		driver.lists++;
		*list = (struct nps_prof_channels){ .chip = driver.list_chip };
		reply->size = sizeof(*list);
		reply->code = driver.list_error;
		break;
	default:
		reply->code = NPS_WORKER_NO_FUNCTION;
	}
	return 0;
}

static struct nps_device_lib lib = { .exchange = fake_exchange };

static struct nps_device_info read_info(const char *name, int64_t version, uint32_t list_chip)
{
	struct nps_device_info info;

	driver.name = name;
	driver.version = version;
	driver.list_chip = list_chip;
	driver.lists = 0;
	assert_int_equal(nps_device_info__read(&lib, 5, &info), 0);
	return info;
}

/* prof-raw: numbers of platforms */
static void numbers_of_generations(void **state)
{
	static const enum nps_chip_generation of[] = {
		[0] = NPS_GENERATION_HWTS,     [1] = NPS_GENERATION_HWTS,     [2] = NPS_GENERATION_HWTS,
		[3] = NPS_GENERATION_HWTS,     [4] = NPS_GENERATION_HWTS,     [5] = NPS_GENERATION_SPLIT,
		[7] = NPS_GENERATION_MINI,     [8] = NPS_GENERATION_MINI,     [11] = NPS_GENERATION_MINI,
		[15] = NPS_GENERATION_V6,      [16] = NPS_GENERATION_V6,      [17] = NPS_GENERATION_UNKNOWN,
		[63] = NPS_GENERATION_UNKNOWN, [64] = NPS_GENERATION_UNKNOWN, [255] = NPS_GENERATION_UNKNOWN,
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		assert_int_equal(nps_generation_of(i), of[i]);
	assert_int_equal(nps_generation_of(UINT32_MAX), NPS_GENERATION_UNKNOWN);
}

static void what_the_driver_reports_is_enough(void **state)
{
	static const struct {
		const char *name;
		int64_t version;
		uint32_t list, platform;
	} reported[] = {
		{ "910B3", 0, 1, 5 },	    { "950PR", 0x0100, 1, 15 }, { "Ascend310P3", 0, 0, 4 },
		{ "new", 0x0320, 1, 5 },    { NULL, 0x0700, 1, 15 },	{ "new", 0x0900, 16, 16 },
		{ NULL, 0x0900, 1, 1 },	    { "new", 0x0900, 17, 17 },	{ NULL, 0x0900, 1000, 255 },
		{ "910_9391", 0, 1000, 5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(reported) / sizeof(*reported); i++)
		assert_int_equal(read_info(reported[i].name, reported[i].version, reported[i].list).platform,
				 reported[i].platform);
	read_info("910B3", 0, 1);
	assert_int_equal(driver.lists, 0); /* not queried for what is known */
	driver.list_error = -1;
	assert_int_equal(read_info("new", 0x0900, 16).platform, NPS_PLATFORM_UNKNOWN);
	driver.list_error = 0;
}

static const struct nps_channel *channel(unsigned int id)
{
	const struct nps_channel *ch;

	for (size_t i = 0; (ch = nps_channel__at(i)); i++)
		if (ch->id == id)
			return ch;
	fail();
	return NULL;
}

/* 16 is a 950; of 17 nobody knows which counters it has, and its counters are not requested by guess. */
static void counters_of_cores(void **state)
{
	static const struct {
		uint32_t platform;
		bool old, split;
		size_t events;
	} chips[] = { { 1, true, false, 8 },   { 4, true, false, 8 },	{ 5, false, true, 8 },
		      { 7, true, false, 8 },   { 15, false, true, 9 },	{ 16, false, true, 9 },
		      { 17, false, false, 0 }, { 255, false, false, 0 } };
	struct nps_device_opts opts = { .metric = NPS_AIC_PIPE, .aic_hz = 100 };
	uint16_t events[NPS_AIC_EVENTS];

	(void)state;
	for (size_t i = 0; i < sizeof(chips) / sizeof(*chips); i++) {
		struct nps_device_info info = { .platform = chips[i].platform,
						.aic_cores = 8,
						.aiv_cores = 8 };

		assert_int_equal(channel(43)->hz(&opts, &info) != 0, chips[i].old);
		assert_int_equal(channel(85)->hz(&opts, &info) != 0, chips[i].old);
		assert_int_equal(channel(54)->hz(&opts, &info) != 0, chips[i].split);
		assert_int_equal(nps_aic_metrics__events(NPS_AIC_PIPE, chips[i].platform, 0, events),
				 chips[i].events);
	}
}

static void assert_text(const cJSON *json, const char *key, const char *value)
{
	const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(json, key));

	assert_non_null(found);
	assert_string_equal(found, value);
}

/*
 * sample.json as the vendor's collector writes it: its reader finds the columns by
 * the name, and the numbers by the events.
 */
static void names_of_sample_json(void **state)
{
	static const struct {
		enum nps_aic_metric metric;
		uint32_t platform;
		const char *aic, *aic_events, *aiv, *aiv_events;
	} chips[] = { { NPS_AIC_PIPE, NPS_PLATFORM_910B, "PipeUtilizationExct",
			"0x416,0x417,0x9,0x302,0xc,0x303,0x54,0x55", "PipeUtilization",
			"0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55" },
		      { NPS_AIC_PIPE, NPS_PLATFORM_910A, "PipeUtilization",
			"0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55", "PipeUtilization",
			"0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55" },
		      { NPS_AIC_CONFLICT, NPS_PLATFORM_910B, "ResourceConflictRatio", "0x64,0x65,0x66",
			"ResourceConflictRatio", "0x64,0x65,0x66" } };

	(void)state;
	for (size_t i = 0; i < sizeof(chips) / sizeof(*chips); i++) {
		cJSON *tasks = cJSON_CreateObject(), *samples = cJSON_CreateObject();

		nps_aic_metrics__describe(chips[i].metric, chips[i].platform, 0, tasks);
		nps_aic_metrics__describe(chips[i].metric, chips[i].platform, 10, samples);
		assert_text(tasks, "ai_core_profiling", "on");
		assert_text(tasks, "ai_core_profiling_mode", "task-based");
		assert_text(tasks, "aiv_profiling_mode", "task-based");
		assert_text(tasks, "ai_core_metrics", chips[i].aic);
		assert_text(tasks, "ai_core_profiling_events", chips[i].aic_events);
		assert_text(tasks, "aiv_metrics", chips[i].aiv);
		assert_text(tasks, "aiv_profiling_events", chips[i].aiv_events);
		assert_false(cJSON_HasObjectItem(tasks, "aicore_sampling_interval"));
		assert_text(samples, "ai_core_profiling_mode", "sample-based");
		assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(samples, "aicore_sampling_interval")) ==
			    10);
		cJSON_Delete(tasks);
		cJSON_Delete(samples);
	}
}

/* Nothing is reported of counters that nobody requested, or that the chip lacks. */
static void no_names_without_counters(void **state)
{
	cJSON *json = cJSON_CreateObject();

	(void)state;
	nps_aic_metrics__describe(NPS_AIC_NONE, NPS_PLATFORM_910B, 0, json);
	nps_aic_metrics__describe(NPS_AIC_L2_CACHE, NPS_PLATFORM_910A, 0, json);
	nps_aic_metrics__describe(NPS_AIC_PIPE, NPS_PLATFORM_UNKNOWN, 0, json);
	assert_int_equal(cJSON_GetArraySize(json), 0);
	cJSON_Delete(json);
}

/* The helper gets bits: each channel at most once for any chip, and no counters for one that nobody knows. */
static void wants_of_the_helper(void **state)
{
	struct nps_agent_want want[NPS_AGENT_MAX_WANTS];
	unsigned int n = nps_task_channels(NPS_AIC_PIPE, want);

	(void)state;
	for (unsigned int chip = 0; chip < 64; chip++) {
		bool known = nps_generation_of(chip) != NPS_GENERATION_UNKNOWN, counters = false;
		uint64_t seen[3] = { 0 };

		for (unsigned int i = 0; i < n; i++) {
			uint32_t c = want[i].channel;

			if (!(want[i].chips >> chip & 1))
				continue;
			assert_false(seen[c / 64] >> c % 64 & 1);
			seen[c / 64] |= 1ULL << c % 64;
			counters |= c == 43 || c == 53;
		}
		assert_true(seen[0] >> 50 & 1);
		assert_true(seen[0] >> 44 & 1);
		assert_true(known || !counters);
	}
	for (unsigned int i = 0; i < n; i++)
		if (want[i].channel == 53 && want[i].chips >> 15 & 1)
			assert_true(want[i].chips >> 16 & 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_generations),
		cmocka_unit_test(what_the_driver_reports_is_enough),
		cmocka_unit_test(counters_of_cores),
		cmocka_unit_test(names_of_sample_json),
		cmocka_unit_test(no_names_without_counters),
		cmocka_unit_test(wants_of_the_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
