/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/session/device_counters.h"

#include "import/session/session_reader.h"

#include <cjson/cJSON.h>
#include <stdio.h>

static void events(const cJSON *json, const char *name, const char *key, struct nps_cann_metrics *metrics)
{
	const cJSON *event;

	snprintf(metrics->name, sizeof(metrics->name), "%s", name);
	cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(json, key))
	{
		if (metrics->nevents == NPS_CANN_EVENTS || !cJSON_IsNumber(event) || event->valuedouble < 0 ||
		    event->valuedouble > UINT16_MAX)
			break;
		metrics->events[metrics->nevents++] = (uint32_t)event->valuedouble;
	}
}

void nps_device_counters(const struct nps_device *device, struct nps_cann_dir *dir)
{
	const char *name = nps_json_str(device->json, "aic_metrics", "");

	*dir = (struct nps_cann_dir){ .fd = -1,
				      .datafd = -1,
				      .chip = device->has_platform ? device->platform : NPS_CHIP_910B };
	dir->aic_mhz = (double)NPS_MIN(nps_json_u64(device->json, "aic_mhz", 0), 100000U);
	dir->aiv_mhz = (double)NPS_MIN(nps_json_u64(device->json, "aiv_mhz", 0), 100000U);
	dir->aic_cores = NPS_MIN(nps_json_u64(device->json, "aic_cores", 0), 10000U);
	dir->aiv_cores = NPS_MIN(nps_json_u64(device->json, "aiv_cores", 0), 10000U);
	events(device->json, name, "aic_events", &dir->aic);
	events(device->json, name, "aiv_events", &dir->aiv);
}
