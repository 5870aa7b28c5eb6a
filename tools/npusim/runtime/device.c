/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices and contexts. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *primary[DEVICES_MAX];
static __thread struct context *current;

rtError_t from_driver(drvError_t err)
{
	switch (err) {
	case DRV_ERROR_NONE:
		return ACL_SUCCESS;
	case DRV_ERROR_NO_DEVICE:
	case DRV_ERROR_INVALID_DEVICE:
		return ACL_ERROR_RT_INVALID_DEVICEID;
	case DRV_ERROR_INVALID_VALUE:
		return ACL_ERROR_RT_PARAM_INVALID;
	case DRV_ERROR_OUT_OF_MEMORY:
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	case DRV_ERROR_NO_RESOURCES:
		return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
	case DRV_ERROR_WAIT_TIMEOUT:
		return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
	default:
		return ACL_ERROR_RT_DRV_INTERNAL_ERROR;
	}
}

/* The job's device number through ASCEND_RT_VISIBLE_DEVICES ("2,3": 0 is 2); -1 if it has no such device. */
static int32_t visible_device(int32_t user)
{
	const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
	uint32_t count;

	if (user < 0 || drvGetDevNum(&count))
		return -1;
	if (!list || !*list)
		return (uint32_t)user < count ? user : -1;
	for (int32_t i = 0; i < user; i++) {
		list = strchr(list, ',');
		if (!list++)
			return -1;
	}
	return strtoul(list, NULL, 10) < count ? (int32_t)strtoul(list, NULL, 10) : -1;
}

struct context *context_current(void)
{
	return current;
}

static struct context *new_context(int32_t user, uint32_t device)
{
	struct context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->device = device;
	ctx->user_device = user;
	ctx->default_stream = stream_new(ctx);
	if (!ctx->default_stream) {
		free(ctx);
		return NULL;
	}
	return ctx;
}

static rtError_t open_context(int32_t user, struct context **out)
{
	int32_t device = visible_device(user);
	halDevOpenIn in = { { 0 } };
	halDevOpenOut opened;
	rtError_t err;

	if (device < 0 || device >= DEVICES_MAX)
		return ACL_ERROR_RT_INVALID_DEVICEID;
	err = from_driver(halDeviceOpen((uint32_t)device, &in, &opened));
	if (err)
		return err;
	*out = new_context(user, (uint32_t)device);
	return *out ? ACL_SUCCESS : ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
}

rtError_t rtSetDevice(int32_t device)
{
	rtError_t err = ACL_SUCCESS;

	if (device < 0 || device >= DEVICES_MAX)
		return ACL_ERROR_RT_INVALID_DEVICEID;
	pthread_mutex_lock(&lock);
	if (!primary[device])
		err = open_context(device, &primary[device]);
	if (!err)
		current = primary[device];
	pthread_mutex_unlock(&lock);
	return err;
}

rtError_t rtGetDevice(int32_t *device)
{
	if (!current)
		return ACL_ERROR_RT_CONTEXT_NULL;
	*device = current->user_device;
	return ACL_SUCCESS;
}

rtError_t rtGetDeviceCount(int32_t *count)
{
	int32_t n = 0;

	while (visible_device(n) >= 0)
		n++;
	*count = n;
	return ACL_SUCCESS;
}

rtError_t rtGetDevicePhyIdByIndex(uint32_t devIndex, uint32_t *phyId)
{
	int32_t device = devIndex < DEVICES_MAX ? visible_device((int32_t)devIndex) : -1;

	if (device < 0 || !phyId)
		return device < 0 ? ACL_ERROR_RT_INVALID_DEVICEID : ACL_ERROR_RT_PARAM_INVALID;
	return from_driver(drvDeviceGetPhyIdByIndex((uint32_t)device, phyId));
}

/* The process stays known to the device until it ends; its queues run dry. */
rtError_t rtDeviceReset(int32_t device)
{
	struct context *ctx;
	rtError_t err;

	if (device < 0 || device >= DEVICES_MAX)
		return ACL_ERROR_RT_INVALID_DEVICEID;
	pthread_mutex_lock(&lock);
	ctx = primary[device];
	primary[device] = NULL;
	pthread_mutex_unlock(&lock);
	if (!ctx)
		return ACL_ERROR_RT_INVALID_DEVICEID;
	err = streams_synchronize(ctx, -1);
	rtStreamDestroy(ctx->default_stream);
	if (current == ctx)
		current = NULL;
	free(ctx);
	return err;
}

rtError_t rtDeviceResetForce(int32_t device)
{
	return rtDeviceReset(device);
}

rtError_t rtDeviceSynchronizeWithTimeout(int32_t timeout)
{
	return current ? streams_synchronize(current, timeout) : ACL_ERROR_RT_CONTEXT_NULL;
}

rtError_t rtDeviceSynchronize(void)
{
	return current ? streams_synchronize(current, -1) : ACL_ERROR_RT_CONTEXT_NULL;
}

rtError_t rtCtxCreate(rtContext_t *ctx, uint32_t flags, int32_t device)
{
	struct context *made = NULL;
	rtError_t err;

	(void)flags;
	if (!ctx)
		return ACL_ERROR_RT_PARAM_INVALID;
	err = open_context(device, &made);
	if (err)
		return err;
	*ctx = current = made;
	return ACL_SUCCESS;
}

rtError_t rtCtxDestroy(rtContext_t ctx)
{
	struct context *c = ctx;

	if (!c)
		return ACL_ERROR_RT_CONTEXT_NULL;
	rtStreamDestroy(c->default_stream);
	if (current == c)
		current = NULL;
	free(c);
	return ACL_SUCCESS;
}

rtError_t rtCtxSetCurrent(rtContext_t ctx)
{
	current = ctx;
	return ctx ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}

rtError_t rtCtxGetCurrent(rtContext_t *ctx)
{
	*ctx = current;
	return current ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}
