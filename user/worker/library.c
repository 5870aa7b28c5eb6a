/* SPDX-License-Identifier: BSD-2-Clause */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct library_symbol {
	const char *name;
	size_t offset; /* of the pointer in struct driver */
	bool must;
};

#define SYMBOL(name, field, must)                                                                            \
	{                                                                                                    \
		name, offsetof(struct driver, field), must                                                   \
	}

static const struct library_symbol hal_symbols[] = {
	SYMBOL("prof_drv_get_channels", get_channels, true),
	SYMBOL("prof_drv_start", start, true),
	SYMBOL("prof_stop", stop, true),
	SYMBOL("prof_channel_read", read, true),
	SYMBOL("halProfDataFlush", flush, false),
	SYMBOL("halGetDeviceInfo", device_info, true),
	SYMBOL("drvGetDevNum", device_count, true),
	SYMBOL("drvGetDevIDs", device_ids, false),
	SYMBOL("halGetAPIVersion", api_version, false),
	SYMBOL("halGetChipInfo", chip_info, false),
	{ 0 },
};

static const struct library_symbol dcmi_symbols[] = {
	SYMBOL("dcmi_init", dcmi_init, true),
	SYMBOL("dcmi_get_card_list", card_list, true),
	SYMBOL("dcmi_get_device_num_in_card", devices_in_card, true),
	SYMBOL("dcmi_get_device_logic_id", logic_id, true),
	SYMBOL("dcmi_get_device_utilization_rate", utilization, false),
	SYMBOL("dcmi_get_device_hbm_info", hbm, false),
	SYMBOL("dcmi_get_device_temperature", temperature, false),
	SYMBOL("dcmi_get_device_power_info", power, false),
	SYMBOL("dcmi_get_device_health", health, false),
	SYMBOL("dcmi_get_device_resource_info", processes, false),
	SYMBOL("dcmi_get_netdev_pkt_stats_info", packets, false),
	{ 0 },
};

/* Name of a missing function that is required; NULL: none. */
static const char *resolve(struct driver *d, void *handle, const struct library_symbol *symbols)
{
	for (; symbols->name; symbols++) {
		void *at = dlsym(handle, symbols->name);

		memcpy((char *)d + symbols->offset, &at, sizeof(at));
		if (!at && symbols->must)
			return symbols->name;
	}
	return NULL;
}

int worker_library_open(uint32_t library, char **paths, struct driver *d, char *text, size_t size)
{
	const char *error = NULL, *lacks;
	void *handle = NULL;
	int code;

	/* The first error is reported: most later paths are of directories without the library. */
	for (; *paths && !handle; paths += !handle) {
		handle = dlopen(*paths, RTLD_NOW | RTLD_GLOBAL);
		if (!handle && !error) {
			error = dlerror();
			snprintf(text, size, "%s", error ? error : *paths);
		}
	}
	if (!handle) {
		if (!error)
			snprintf(text, size, "it is not there");
		return -ENOENT;
	}
	lacks = resolve(d, handle, library == NPS_WORKER_DCMI ? dcmi_symbols : hal_symbols);
	if (lacks) {
		snprintf(text, size, "%s has no %s", *paths, lacks);
		return -ELIBACC;
	}
	code = library == NPS_WORKER_DCMI ? d->dcmi_init() : 0;
	if (code) {
		snprintf(text, size, "%s: dcmi_init failed (code %d)", *paths, code);
		return -ELIBACC;
	}
	snprintf(text, size, "%s", *paths);
	return 0;
}
