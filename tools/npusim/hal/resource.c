/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids: streams and notifies belong to the board, events to the process. */
#include "device.h"

static int claim_event(struct device *d)
{
	int id = -1;

	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < EVENTS_MAX && id < 0; i++) {
		uint8_t bit = (uint8_t)(1 << i % 8);

		if (d->event_in_use[i / 8] == 0xff) {
			i |= 7;
		} else if (!(d->event_in_use[i / 8] & bit)) {
			d->event_in_use[i / 8] |= bit;
			id = i;
		}
	}
	pthread_mutex_unlock(&d->lock);
	return id;
}

static void release_event(struct device *d, uint32_t id)
{
	pthread_mutex_lock(&d->lock);
	d->event_in_use[id / 8] &= (uint8_t) ~(1 << id % 8);
	pthread_mutex_unlock(&d->lock);
}

drvError_t halResourceIdAlloc(uint32_t devId, struct halResourceIdInputInfo *in,
			      struct halResourceIdOutputInfo *out)
{
	struct device *d = device_opened(devId);
	int id = -1;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	if (in->type == DRV_STREAM_ID)
		id = board_claim_stream(&d->board);
	else if (in->type == DRV_NOTIFY_ID)
		id = board_claim_notify(&d->board);
	else if (in->type == DRV_EVENT_ID)
		id = claim_event(d);
	else
		return DRV_ERROR_NOT_SUPPORT;
	if (id < 0)
		return DRV_ERROR_NO_RESOURCES;
	out->resourceId = (uint32_t)id;
	return DRV_ERROR_NONE;
}

drvError_t halResourceIdFree(uint32_t devId, struct halResourceIdInputInfo *in)
{
	struct device *d = device_opened(devId);

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	if (in->type == DRV_STREAM_ID && in->resourceId < BOARD_STREAMS)
		board_release_stream(&d->board, in->resourceId);
	else if (in->type == DRV_NOTIFY_ID && in->resourceId < BOARD_NOTIFIES)
		board_release_notify(&d->board, in->resourceId);
	else if (in->type == DRV_EVENT_ID && in->resourceId < EVENTS_MAX)
		release_event(d, in->resourceId);
	else
		return DRV_ERROR_INVALID_VALUE;
	return DRV_ERROR_NONE;
}
