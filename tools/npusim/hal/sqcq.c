/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues as the runtime sees them: make one, put SQEs in, look how far it got, take CQEs out. */
#include "device.h"
#include "kmod.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_STEP_NS 100000000u

static struct sq *sq_get(struct device *d, uint32_t id)
{
	return id < (uint32_t)d->nsqs && d->sqs[id]->in_use ? d->sqs[id] : NULL;
}

static struct sq *free_sq(struct device *d)
{
	struct sq *q;

	for (int i = 0; i < d->nsqs; i++) {
		if (!d->sqs[i]->in_use)
			return d->sqs[i];
	}
	if (d->nsqs == SQS_MAX)
		return NULL;
	q = calloc(1, sizeof(*q));
	if (q) {
		q->id = (uint32_t)d->nsqs;
		d->sqs[d->nsqs++] = q;
	}
	return q;
}

drvError_t halSqCqAllocate(uint32_t devId, struct halSqCqInputInfo *in, struct halSqCqOutputInfo *out)
{
	struct device *d = device_opened(devId);
	struct sq *q;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	if (!in || !out || in->sqeSize != sizeof(struct stars_sqe) || in->info[0] >= BOARD_STREAMS)
		return DRV_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	q = free_sq(d);
	if (q) {
		q->in_use = true;
		q->stream = (uint16_t)in->info[0];
		q->flip = 0;
		q->done = q->scheduled = q->submitted = q->last_end = 0;
		out->sqId = q->id;
		out->cqId = 0;
		out->queueVAddr = (uintptr_t)q->ring;
		out->flag = 0;
	}
	pthread_mutex_unlock(&d->lock);
	if (q)
		kmod_queue(devId, in, out);
	return q ? DRV_ERROR_NONE : DRV_ERROR_NO_RESOURCES;
}

/* What is still queued is dropped, as on the hardware. */
drvError_t halSqCqFree(uint32_t devId, struct halSqCqFreeInfo *info)
{
	struct device *d = device_opened(devId);
	struct sq *q;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&d->lock);
	sched_retire(d, truth_now());
	q = sq_get(d, info->sqId);
	if (q) {
		q->in_use = false;
		q->done = q->scheduled = q->submitted;
	}
	pthread_cond_broadcast(&d->progress);
	pthread_mutex_unlock(&d->lock);
	if (q)
		kmod_queue_freed(devId, info);
	return q ? DRV_ERROR_NONE : DRV_ERROR_INVALID_HANDLE;
}

drvError_t halSqCqQuery(uint32_t devId, struct halSqCqQueryInfo *info)
{
	struct device *d = device_opened(devId);
	drvError_t err = DRV_ERROR_NONE;
	struct sq *q;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&d->lock);
	sched_retire(d, truth_now());
	q = sq_get(d, info->sqId);
	if (!q)
		err = DRV_ERROR_INVALID_HANDLE;
	else if (info->prop == DRV_SQCQ_PROP_SQ_STATUS)
		info->value[0] = 1;
	else if (info->prop == DRV_SQCQ_PROP_SQ_HEAD)
		info->value[0] = (uint32_t)(q->done % SQ_DEPTH);
	else if (info->prop == DRV_SQCQ_PROP_SQ_TAIL)
		info->value[0] = (uint32_t)(q->submitted % SQ_DEPTH);
	else
		err = DRV_ERROR_NOT_SUPPORT;
	pthread_mutex_unlock(&d->lock);
	return err;
}

static drvError_t submit(struct device *d, struct halTaskSendInfo *info, uint64_t now)
{
	const struct stars_sqe *sqe = (const struct stars_sqe *)(const void *)info->sqe_addr;
	struct sq *q = sq_get(d, info->sqId);

	if (!q)
		return DRV_ERROR_INVALID_HANDLE;
	if (q->submitted + info->sqe_num - q->done > SQ_DEPTH)
		return DRV_ERROR_NO_RESOURCES;
	info->pos = (uint32_t)(q->submitted % SQ_DEPTH);
	for (uint32_t i = 0; i < info->sqe_num; i++) {
		if (board_chip(&d->board)->log != CHIP_STARS2 && sqe[i].stream != q->stream)
			return DRV_ERROR_INVALID_VALUE;
		sched_submit(d, q, &sqe[i], now);
	}
	return DRV_ERROR_NONE;
}

drvError_t halSqTaskSend(uint32_t devId, struct halTaskSendInfo *info)
{
	uint64_t now = truth_now();
	struct device *d = device_opened(devId);
	drvError_t err;
	bool wake;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	if (!info || !info->sqe_addr || info->sqe_num == 0 || info->sqe_num > SQ_DEPTH)
		return DRV_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	err = submit(d, info, now);
	wake = d->idle;
	d->idle = false;
	pthread_mutex_unlock(&d->lock);
	if (wake)
		board_ring(&d->board, d->board.slot);
	if (err)
		return err;
	kmod_send(devId, info);
	return DRV_ERROR_NONE;
}

static void wait_for_progress(struct device *d)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += WAIT_STEP_NS;
	if (ts.tv_nsec >= 1000000000L) {
		ts.tv_nsec -= 1000000000L;
		ts.tv_sec++;
	}
	pthread_cond_timedwait(&d->progress, &d->lock, &ts);
}

/* One look; sleeps if it is not time yet. With the device locked. */
static void wait_once(struct device *d, struct sq *q, uint64_t count, uint64_t now)
{
	struct truth_task last;

	if (q->scheduled < count) {
		wait_for_progress(d);
		return;
	}
	last = q->ring[(count - 1) % SQ_DEPTH].facts;
	pthread_mutex_unlock(&d->lock);
	if (last.end > now)
		kmod_wait(d->id, last.stream, (uint16_t)last.task, last.end - now);
	pthread_mutex_lock(&d->lock);
}

drvError_t sqcq_wait_done(uint32_t devId, uint32_t sqId, uint64_t count, int32_t timeout_ms)
{
	struct device *d = device_opened(devId);
	uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : truth_now() + (uint64_t)timeout_ms * 1000000u;
	drvError_t err = DRV_ERROR_NONE;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&d->lock);
	for (;;) {
		uint64_t now = truth_now();
		struct sq *q = sq_get(d, sqId);

		if (!q) {
			err = DRV_ERROR_INVALID_HANDLE;
			break;
		}
		sched_retire(d, now);
		if (q->done >= count)
			break;
		if (now >= deadline) {
			err = DRV_ERROR_WAIT_TIMEOUT;
			break;
		}
		wait_once(d, q, count, now);
	}
	pthread_mutex_unlock(&d->lock);
	return err;
}

drvError_t halCqReportRecv(uint32_t devId, struct halReportRecvInfo *info)
{
	struct device *d = device_opened(devId);
	uint64_t deadline;
	uint32_t n = 0;

	if (!d)
		return DRV_ERROR_INVALID_DEVICE;
	if (!info || !info->cqe_addr || info->type != DRV_LOGIC_TYPE)
		return DRV_ERROR_INVALID_VALUE;
	deadline = info->timeout < 0 ? UINT64_MAX : truth_now() + (uint64_t)info->timeout * 1000000u;
	pthread_mutex_lock(&d->lock);
	for (;;) {
		uint64_t now = truth_now();

		sched_retire(d, now);
		if (d->cq_head < d->cq_tail || now >= deadline)
			break;
		wait_for_progress(d);
	}
	for (; n < info->cqe_num && d->cq_head < d->cq_tail; n++, d->cq_head++)
		memcpy(info->cqe_addr + n * sizeof(struct logic_cqe), &d->cq[d->cq_head % CQ_DEPTH],
		       sizeof(struct logic_cqe));
	pthread_mutex_unlock(&d->lock);
	info->report_cqe_num = n;
	return n ? DRV_ERROR_NONE : DRV_ERROR_WAIT_TIMEOUT;
}
