/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening devices and querying them. */
#include "device.h"

#include "control.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define API_VERSION 0x071905
#define HOST_OSC_KHZ 1000000

drvError_t halDeviceOpen(uint32_t devid, halDevOpenIn *in, halDevOpenOut *out)
{
	(void)in;
	if (out)
		memset(out, 0, sizeof(*out));
	return device_open(devid);
}

drvError_t halDeviceClose(uint32_t devid, void *in)
{
	(void)in;
	return device_opened(devid) ? DRV_ERROR_NONE : DRV_ERROR_INVALID_DEVICE;
}

drvError_t drvDeviceOpen(void **devInfo, uint32_t devId)
{
	if (devInfo)
		*devInfo = NULL;
	return device_open(devId);
}

drvError_t drvDeviceClose(uint32_t devId)
{
	return halDeviceClose(devId, NULL);
}

drvError_t drvGetDevNum(uint32_t *num)
{
	int err = control_call(CONTROL_ANY, CONTROL_ANY, CALL_INFO);

	*num = device_count();
	return err;
}

drvError_t drvGetDevIDs(uint32_t *ids, uint32_t len)
{
	for (uint32_t i = 0; i < len && i < device_count(); i++)
		ids[i] = i;
	return DRV_ERROR_NONE;
}

drvError_t drvGetPlatformInfo(uint32_t *info)
{
	*info = 1; /* host */
	return DRV_ERROR_NONE;
}

drvError_t drvDeviceGetPhyIdByIndex(uint32_t index, uint32_t *phyId)
{
	if (index >= device_count())
		return DRV_ERROR_INVALID_DEVICE;
	*phyId = index;
	return DRV_ERROR_NONE;
}

drvError_t drvDeviceStatus(uint32_t devId, int *status)
{
	if (devId >= device_count())
		return DRV_ERROR_INVALID_DEVICE;
	*status = 1; /* works */
	return DRV_ERROR_NONE;
}

int drvDeviceGetBareTgid(void)
{
	return host_pid();
}

drvError_t halGetAPIVersion(int *version)
{
	*version = API_VERSION;
	return DRV_ERROR_NONE;
}

drvError_t halGetChipInfo(unsigned int devId, halChipInfo *info)
{
	int err = control_call(devId, CONTROL_ANY, CALL_INFO);
	struct device *d = err ? NULL : device_get(devId);

	if (!d)
		return err ? err : DRV_ERROR_INVALID_DEVICE;
	memset(info, 0, sizeof(*info));
	strcpy(info->type, "Ascend");
	strcpy(info->name, board_chip(&d->board)->chip_name);
	strcpy(info->version, "V1");
	return DRV_ERROR_NONE;
}

drvError_t halGetSocVersion(uint32_t devId, char *version, uint32_t len)
{
	struct device *d = device_get(devId);

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	snprintf(version, len, "%s", board_chip(&d->board)->soc);
	return DRV_ERROR_NONE;
}

/* A message's way to the device or back; too short to sleep. */
static void message_delay(struct device *d)
{
	uint32_t ns, odds;
	uint64_t until;

	pthread_mutex_lock(&d->lock);
	odds = model_random(d, 100);
	ns = 1500 + model_random(d, odds < 3 ? 60000 : odds < 20 ? 12000 : 3000);
	pthread_mutex_unlock(&d->lock);
	until = truth_now() + ns;
	while (truth_now() < until)
		;
}

/* The instant at which the device looked at its clocks, somewhere between the call and its return. */
static uint64_t query_clocks(struct device *d)
{
	uint64_t raw, delay, until;

	message_delay(d);
	raw = truth_now();
	pthread_mutex_lock(&d->lock);
	delay = clock_query_delay(model_random(d, UINT32_MAX));
	pthread_mutex_unlock(&d->lock);
	until = raw + delay;
	if (delay > 200000)
		sleep_ns(delay - 100000);
	while (truth_now() < until)
		;
	message_delay(d);
	return raw;
}

/* The device's own CLOCK_MONOTONIC_RAW: the counter in ns since power up. */
static int64_t device_raw(struct device *d)
{
	uint64_t ticks = board_counter(&d->board, query_clocks(d));

	return (int64_t)((unsigned __int128)ticks * 1000000000u / board_chip(&d->board)->counter_hz);
}

/* All or nothing: there is a task in a queue, or there is none. */
static int64_t utilisation(struct device *d)
{
	int64_t busy = 0;

	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < d->nsqs; i++) {
		if (d->sqs[i]->done < d->sqs[i]->submitted)
			busy = 100;
	}
	pthread_mutex_unlock(&d->lock);
	return busy;
}

static drvError_t system_info(struct device *d, int32_t info, int64_t *value)
{
	switch (info) {
	case INFO_TYPE_VERSION:
		*value = board_chip(&d->board)->version;
		return DRV_ERROR_NONE;
	case INFO_TYPE_CORE_NUM:
		*value = 1;
		return DRV_ERROR_NONE;
	case INFO_TYPE_SYS_COUNT:
		*value = (int64_t)board_counter(&d->board, query_clocks(d));
		return DRV_ERROR_NONE;
	case INFO_TYPE_MONOTONIC_RAW:
		*value = device_raw(d);
		return DRV_ERROR_NONE;
	case INFO_TYPE_PHY_CHIP_ID:
		*value = d->id;
		return DRV_ERROR_NONE;
	case INFO_TYPE_PHY_DIE_ID:
		*value = 0;
		return DRV_ERROR_NONE;
	case INFO_TYPE_HOST_OSC_FREQUE:
		*value = HOST_OSC_KHZ;
		return DRV_ERROR_NONE;
	case INFO_TYPE_DEV_OSC_FREQUE:
		*value = (int64_t)(board_chip(&d->board)->counter_hz / 1000);
		return DRV_ERROR_NONE;
	default:
		return DRV_ERROR_NOT_SUPPORT;
	}
}

static drvError_t core_info(struct device *d, int64_t cores, int32_t info, int64_t *value)
{
	switch (info) {
	case INFO_TYPE_CORE_NUM:
		*value = cores;
		return DRV_ERROR_NONE;
	case INFO_TYPE_FREQUE:
		*value = board_chip(&d->board)->core_mhz;
		return DRV_ERROR_NONE;
	case INFO_TYPE_UTILIZATION:
		*value = utilisation(d);
		return DRV_ERROR_NONE;
	default:
		return DRV_ERROR_NOT_SUPPORT;
	}
}

drvError_t halGetDeviceInfo(uint32_t devId, int32_t moduleType, int32_t infoType, int64_t *value)
{
	int err = control_call(devId, CONTROL_ANY, CALL_INFO);
	struct device *d = err ? NULL : device_get(devId);

	if (!d)
		return err ? err : DRV_ERROR_INVALID_DEVICE;
	if (!value)
		return DRV_ERROR_INVALID_VALUE;
	switch (moduleType) {
	case MODULE_TYPE_SYSTEM:
		return system_info(d, infoType, value);
	case MODULE_TYPE_AICORE:
		return core_info(d, board_chip(&d->board)->aicores, infoType, value);
	case MODULE_TYPE_VECTOR_CORE:
		return core_info(d, board_chip(&d->board)->vector_cores, infoType, value);
	case MODULE_TYPE_AICPU:
		return core_info(d, board_chip(&d->board)->aicpus, infoType, value);
	default:
		return DRV_ERROR_NOT_SUPPORT;
	}
}
