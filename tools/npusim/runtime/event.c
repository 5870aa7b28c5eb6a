/* SPDX-License-Identifier: BSD-2-Clause */
/* Events and notifies. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENT_IDS 65536
#define CQES 32

struct notify {
	uint32_t device, id;
	bool own;
};

/* How often the event of an id was recorded; outlives the event, so that a new one cannot be taken for it. */
static _Atomic uint32_t records[EVENT_IDS];

static pthread_mutex_t stamps_lock = PTHREAD_MUTEX_INITIALIZER;
static struct event *awaiting;

rtError_t rtEventCreateWithFlag(rtEvent_t *event, uint32_t flag)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };
	struct halResourceIdOutputInfo out;
	struct context *ctx = context_current();
	struct event *e;
	rtError_t err;

	if (!event)
		return ACL_ERROR_RT_PARAM_INVALID;
	if (!ctx)
		return ACL_ERROR_RT_CONTEXT_NULL;
	err = from_driver(halResourceIdAlloc(ctx->device, &in, &out));
	if (err)
		return err;
	e = calloc(1, sizeof(*e));
	if (!e) {
		in.resourceId = out.resourceId;
		halResourceIdFree(ctx->device, &in);
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	}
	e->device = ctx->device;
	e->id = out.resourceId;
	e->flag = flag;
	*event = e;
	return ACL_SUCCESS;
}

rtError_t rtEventCreate(rtEvent_t *event)
{
	return rtEventCreateWithFlag(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
}

static void await_stamp(struct event *e)
{
	pthread_mutex_lock(&stamps_lock);
	e->stamped = false;
	e->next = awaiting;
	awaiting = e;
	pthread_mutex_unlock(&stamps_lock);
}

/* With the stamps locked. */
static void forget_stamp(struct event *e)
{
	for (struct event **p = &awaiting; *p; p = &(*p)->next) {
		if (*p == e) {
			*p = e->next;
			break;
		}
	}
}

static void cqe_stamp(const struct logic_cqe *cqe)
{
	for (struct event *e = awaiting; e; e = e->next) {
		if (e->sqe_task == cqe->task && e->sqe_stream == cqe->stream) {
			e->syscnt = cqe->syscnt;
			e->stamped = true;
			forget_stamp(e);
			break;
		}
	}
}

void event_collect(uint32_t device)
{
	struct logic_cqe cqes[CQES];
	struct halReportRecvInfo info = { .type = DRV_LOGIC_TYPE,
					  .cqe_addr = (uint8_t *)cqes,
					  .cqe_num = CQES };

	pthread_mutex_lock(&stamps_lock);
	while (awaiting && halCqReportRecv(device, &info) == DRV_ERROR_NONE) {
		for (uint32_t i = 0; i < info.report_cqe_num; i++)
			cqe_stamp(&cqes[i]);
	}
	pthread_mutex_unlock(&stamps_lock);
}

rtError_t rtEventDestroy(rtEvent_t event)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };
	struct event *e = event;

	if (!e)
		return ACL_ERROR_RT_PARAM_INVALID;
	pthread_mutex_lock(&stamps_lock);
	forget_stamp(e);
	pthread_mutex_unlock(&stamps_lock);
	in.resourceId = e->id;
	halResourceIdFree(e->device, &in);
	free(e);
	return ACL_SUCCESS;
}

rtError_t rtEventRecord(rtEvent_t event, rtStream_t stream)
{
	TRUTH_CALL("rtEventRecord");
	struct stream *s = stream_of(stream);
	struct stars_sqe sqe = { .type = STARS_EVENT_RECORD };
	struct event *e = event;
	rtError_t err;

	if (!e || !s)
		return e ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID;
	pthread_mutex_lock(&stamps_lock);
	forget_stamp(e);
	pthread_mutex_unlock(&stamps_lock);
	e->sequence = atomic_fetch_add(&records[e->id], 1) + 1;
	e->stream = s;
	if (e->flag & ACL_EVENT_TIME_LINE)
		sqe.flags = STARS_WR_CQE;
	sqe.event.id = e->id;
	sqe.event.sequence = e->sequence;
	err = stream_send(s, &sqe, &e->position);
	e->sqe_stream = sqe.stream;
	e->sqe_task = sqe.task;
	if (!err && e->flag & ACL_EVENT_TIME_LINE)
		await_stamp(e);
	return err;
}

/* Waits for the record that was the last one when this was called. */
rtError_t rtStreamWaitEvent(rtStream_t stream, rtEvent_t event)
{
	TRUTH_CALL("rtStreamWaitEvent");
	struct stream *s = stream_of(stream);
	struct stars_sqe sqe = { .type = STARS_EVENT_WAIT };
	struct event *e = event;

	if (!e || !s)
		return e ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID;
	if (!e->stream)
		return ACL_SUCCESS;
	sqe.event.id = e->id;
	sqe.event.sequence = e->sequence;
	return stream_send(s, &sqe, NULL);
}

rtError_t rtEventSynchronizeWithTimeout(rtEvent_t event, int32_t timeout)
{
	struct event *e = event;

	if (!e)
		return ACL_ERROR_RT_PARAM_INVALID;
	return e->stream ? stream_wait(e->stream, e->position, timeout) : ACL_SUCCESS;
}

rtError_t rtEventSynchronize(rtEvent_t event)
{
	return rtEventSynchronizeWithTimeout(event, -1);
}

rtError_t rtEventQueryStatus(rtEvent_t event, int *status)
{
	rtError_t err = rtEventSynchronizeWithTimeout(event, 0);

	if (err && err != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
		return err;
	*status = err == ACL_SUCCESS;
	return ACL_SUCCESS;
}

/* The counter's rate is the chip's. */
static double tick_ns(uint32_t device)
{
	int64_t khz = 0;

	return halGetDeviceInfo(device, MODULE_TYPE_SYSTEM, INFO_TYPE_DEV_OSC_FREQUE, &khz) || khz <= 0
		       ? 0
		       : 1e6 / (double)khz;
}

static rtError_t event_syscnt(struct event *e, uint64_t *ticks)
{
	rtError_t err;

	if (!e || !e->stream || !(e->flag & ACL_EVENT_TIME_LINE))
		return ACL_ERROR_RT_PARAM_INVALID;
	err = rtEventSynchronize(e);
	if (err)
		return err;
	if (!e->stamped)
		event_collect(e->device);
	*ticks = e->syscnt;
	return e->stamped ? ACL_SUCCESS : ACL_ERROR_RT_DRV_INTERNAL_ERROR;
}

rtError_t rtEventElapsedTime(float *ms, rtEvent_t start, rtEvent_t end)
{
	uint64_t from, to;
	rtError_t err = event_syscnt(start, &from);

	if (err)
		return err;
	err = event_syscnt(end, &to);
	if (err)
		return err;
	*ms = (float)((double)(int64_t)(to - from) * tick_ns(((struct event *)start)->device) / 1e6);
	return ACL_SUCCESS;
}

rtError_t rtEventGetTimeStamp(uint64_t *timestamp, rtEvent_t event)
{
	uint64_t ticks;
	rtError_t err = event_syscnt(event, &ticks);

	if (err)
		return err;
	*timestamp = (uint64_t)((double)ticks * tick_ns(((struct event *)event)->device) / 1000);
	return ACL_SUCCESS;
}

rtError_t rtNotifyCreate(int32_t device, rtNotify_t *notify)
{
	struct halResourceIdInputInfo in = { .type = DRV_NOTIFY_ID };
	struct halResourceIdOutputInfo out;
	struct context *ctx = context_current();
	struct notify *n;
	rtError_t err;

	(void)device;
	if (!ctx)
		return ACL_ERROR_RT_CONTEXT_NULL;
	err = from_driver(halResourceIdAlloc(ctx->device, &in, &out));
	if (err)
		return err;
	n = malloc(sizeof(*n));
	if (!n)
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	n->device = ctx->device;
	n->id = out.resourceId;
	n->own = true;
	*notify = n;
	return ACL_SUCCESS;
}

rtError_t rtNotifyDestroy(rtNotify_t notify)
{
	struct notify *n = notify;
	struct halResourceIdInputInfo in = { .type = DRV_NOTIFY_ID };

	if (!n)
		return ACL_ERROR_RT_PARAM_INVALID;
	in.resourceId = n->id;
	if (n->own)
		halResourceIdFree(n->device, &in);
	free(n);
	return ACL_SUCCESS;
}

static rtError_t send_notify(struct notify *n, rtStream_t stream, uint8_t type, uint32_t timeout)
{
	struct stream *s = stream_of(stream);
	struct stars_sqe sqe = { .type = type };

	if (!n || !s)
		return n ? ACL_ERROR_RT_CONTEXT_NULL : ACL_ERROR_RT_PARAM_INVALID;
	sqe.notify.device = n->device;
	sqe.notify.id = n->id;
	sqe.notify.timeout = timeout;
	return stream_send(s, &sqe, NULL);
}

rtError_t rtNotifyRecord(rtNotify_t notify, rtStream_t stream)
{
	TRUTH_CALL("rtNotifyRecord");
	return send_notify(notify, stream, STARS_NOTIFY_RECORD, 0);
}

rtError_t rtNotifyWaitWithTimeOut(rtNotify_t notify, rtStream_t stream, uint32_t timeout)
{
	TRUTH_CALL("rtNotifyWaitWithTimeOut");
	return send_notify(notify, stream, STARS_NOTIFY_WAIT, timeout);
}

rtError_t rtNotifyWait(rtNotify_t notify, rtStream_t stream)
{
	TRUTH_CALL("rtNotifyWait");
	return send_notify(notify, stream, STARS_NOTIFY_WAIT, 0);
}

rtError_t rtIpcSetNotifyName(rtNotify_t notify, char *name, uint32_t len)
{
	struct notify *n = notify;

	if (!n || snprintf(name, len, "npusim-notify:%u:%u", n->device, n->id) >= (int)len)
		return ACL_ERROR_RT_PARAM_INVALID;
	return ACL_SUCCESS;
}

rtError_t rtIpcOpenNotify(rtNotify_t *notify, const char *name)
{
	struct notify *n = calloc(1, sizeof(*n));

	if (!n)
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	if (sscanf(name, "npusim-notify:%u:%u", &n->device, &n->id) != 2) {
		free(n);
		return ACL_ERROR_RT_PARAM_INVALID;
	}
	*notify = n;
	return ACL_SUCCESS;
}
