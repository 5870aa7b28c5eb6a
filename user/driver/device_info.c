/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/device_info.h"

#include <cjson/cJSON.h>

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "driver/device_lib.h"

/* halGetDeviceInfo (cann-abi 4.3) */
enum { MODULE_SYSTEM = 0, MODULE_AICPU = 1, MODULE_CCPU = 2, MODULE_AICORE = 4, MODULE_VECTOR = 7 };
enum {
	INFO_VERSION = 1,
	INFO_CORE_NUM = 3,
	INFO_FREQUENCY = 4,
	INFO_OCCUPY = 8,
	INFO_HOST_OSC = 24,
	INFO_DEVICE_OSC = 25
};

static uint32_t info_query(const struct nps_device_lib *lib, uint32_t id, int module, int info, int64_t most)
{
	int64_t value = 0;

	return nps_device_lib__info(lib, id, module, info, &value, NULL) || value < 0 || value > most
		       ? 0
		       : (uint32_t)value;
}

enum nps_chip_generation nps_generation_of(uint32_t platform)
{
	switch (platform) {
	case NPS_PLATFORM_310:
	case NPS_PLATFORM_910A:
	case 2:
	case 3:
	case NPS_PLATFORM_310P:
		return NPS_GENERATION_HWTS;
	case NPS_PLATFORM_910B:
		return NPS_GENERATION_SPLIT;
	case NPS_PLATFORM_310B:
	case 8:
	case 11:
		return NPS_GENERATION_MINI;
	case NPS_PLATFORM_950:
	case NPS_PLATFORM_950_1:
		return NPS_GENERATION_V6;
	default:
		return NPS_GENERATION_UNKNOWN;
	}
}

uint32_t nps_platform_of(const char *chip)
{
	static const struct {
		const char *name;
		uint32_t platform;
	} chips[] = {
		{ "910A", NPS_PLATFORM_910A },	 { "910PRO", NPS_PLATFORM_910A },
		{ "910_93", NPS_PLATFORM_910B }, { "910B", NPS_PLATFORM_910B },
		{ "910C", NPS_PLATFORM_910B },	 { "310P", NPS_PLATFORM_310P },
		{ "310B", NPS_PLATFORM_310B },	 { "950", NPS_PLATFORM_950 },
		{ "910", NPS_PLATFORM_910A },	 { "310", NPS_PLATFORM_310 },
	};

	if (strncasecmp(chip, "ascend", 6) == 0)
		chip += 6;
	for (size_t i = 0; i < sizeof(chips) / sizeof(*chips); i++)
		if (strncasecmp(chip, chips[i].name, strlen(chips[i].name)) == 0)
			return chips[i].platform;
	return NPS_PLATFORM_UNKNOWN;
}

/* Generations by the number in the driver's version. */
static uint32_t platform_of_version(uint32_t version)
{
	switch (version >> 8 & 0xff) {
	case 1:
		return NPS_PLATFORM_910A;
	case 3:
		return NPS_PLATFORM_910B;
	case 4:
		return NPS_PLATFORM_310B;
	case 6:
	case 7:
		return NPS_PLATFORM_950;
	default:
		return NPS_PLATFORM_UNKNOWN;
	}
}

/* From the list of channels, which costs a message to the device, so only if nothing else has it. */
static uint32_t platform_of_list(const struct nps_device_lib *lib, uint32_t id)
{
	struct nps_prof_channels *list = calloc(1, sizeof(*list));
	uint32_t platform = NPS_PLATFORM_UNKNOWN;

	if (list && !nps_device_lib__channels(lib, id, list) && list->chip < NPS_PLATFORM_UNKNOWN)
		platform = list->chip;
	free(list);
	return platform;
}

static void name_chip(const struct nps_device_lib *lib, uint32_t id, struct nps_device_info *info)
{
	char name[NPS_CHIP_TEXT] = "", *to = info->chip;

	if (nps_device_lib__chip_name(lib, id, name))
		return;
	for (const char *from = name; *from && to < info->chip + sizeof(info->chip) - 1; from++)
		*to++ = isalnum((unsigned char)*from) ? *from : '_';
}

int nps_device_info__read(const struct nps_device_lib *lib, uint32_t id, struct nps_device_info *info)
{
	int64_t version = 0, api = 0;

	*info = (struct nps_device_info){ .id = id, .platform = NPS_PLATFORM_UNKNOWN };
	info->counter_khz = info_query(lib, id, MODULE_SYSTEM, INFO_DEVICE_OSC, 10000000);
	if (!info->counter_khz && nps_device_lib__info(lib, id, MODULE_SYSTEM, INFO_VERSION, &version, NULL))
		return -ENODEV;
	info->host_khz = info_query(lib, id, MODULE_SYSTEM, INFO_HOST_OSC, 10000000);
	info->aic_mhz = info_query(lib, id, MODULE_AICORE, INFO_FREQUENCY, 100000);
	info->aiv_mhz = info_query(lib, id, MODULE_VECTOR, INFO_FREQUENCY, 100000);
	info->aic_cores = info_query(lib, id, MODULE_AICORE, INFO_CORE_NUM, 1024);
	info->aiv_cores = info_query(lib, id, MODULE_VECTOR, INFO_CORE_NUM, 1024);
	info->ai_cpus = info_query(lib, id, MODULE_AICPU, INFO_CORE_NUM, 1024);
	info->ctrl_cpus = info_query(lib, id, MODULE_CCPU, INFO_CORE_NUM, 1024);
	info->ai_cpu_mask = info_query(lib, id, MODULE_AICPU, INFO_OCCUPY, UINT32_MAX);
	name_chip(lib, id, info);
	info->platform = nps_platform_of(info->chip);
	if (info->platform == NPS_PLATFORM_UNKNOWN)
		info->platform =
			platform_of_version(info_query(lib, id, MODULE_SYSTEM, INFO_VERSION, UINT32_MAX));
	if (info->platform == NPS_PLATFORM_UNKNOWN)
		info->platform = platform_of_list(lib, id);
	if (!nps_device_lib__api_version(lib, &api) && api > 0)
		info->driver_version = (uint32_t)api;
	return 0;
}

void nps_device_info__complain(const struct nps_device_info *info)
{
	static atomic_uint_fast64_t reported;
	uint64_t bit = 1ULL << (info->id % NPS_DEVICE_MAX);

	if (nps_generation_of(info->platform) != NPS_GENERATION_UNKNOWN ||
	    atomic_fetch_or(&reported, bit) & bit)
		return;
	nps_warn("device %u: its chip (%s, number %u) is unknown to npuscope: counters of its cores are not "
		 "recorded, and ids and kinds of its tasks may be wrong: is there a newer npuscope?",
		 info->id, info->chip[0] ? info->chip : "without a name", info->platform);
}

void nps_device_info__describe(const struct nps_device_info *info, cJSON *device)
{
	cJSON_AddNumberToObject(device, "id", info->id);
	cJSON_AddNumberToObject(device, "freq_khz", info->counter_khz);
	cJSON_AddStringToObject(device, "chip", info->chip);
	if (info->platform != NPS_PLATFORM_UNKNOWN)
		cJSON_AddNumberToObject(device, "platform", info->platform);
	cJSON_AddNumberToObject(device, "aic_mhz", info->aic_mhz);
	cJSON_AddNumberToObject(device, "aiv_mhz", info->aiv_mhz);
	cJSON_AddNumberToObject(device, "aic_cores", info->aic_cores);
	cJSON_AddNumberToObject(device, "aiv_cores", info->aiv_cores);
}

cJSON *nps_device_info__entry(const struct nps_device_info *info, cJSON *devices)
{
	cJSON *j;

	cJSON_ArrayForEach(j, devices)
	{
		if (cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(j, "id")) == info->id)
			return j;
	}
	j = cJSON_CreateObject();
	nps_device_info__describe(info, j);
	cJSON_AddItemToArray(devices, j);
	return j;
}
