/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams: the task ids, the way into the queue and the wait for its end. */
#include "internal.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FULL_QUEUE_POLL_NS 100000L

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;

static __thread uint32_t last_task, last_stream;

struct stream *stream_of(rtStream_t handle)
{
	struct context *ctx = context_current();

	if (handle)
		return handle;
	return ctx ? ctx->default_stream : NULL;
}

static drvError_t allocate_queue(struct stream *s)
{
	struct halResourceIdInputInfo id_in = { .type = DRV_STREAM_ID };
	struct halResourceIdOutputInfo id_out;
	struct halSqCqInputInfo in = { .sqeSize = sizeof(struct stars_sqe),
				       .cqeSize = sizeof(struct stars_cqe),
				       .sqeDepth = SQ_DEPTH,
				       .cqeDepth = SQ_DEPTH };
	struct halSqCqOutputInfo out;
	drvError_t err = halResourceIdAlloc(s->device, &id_in, &id_out);

	if (err)
		return err;
	s->id = id_out.resourceId;
	in.info[0] = s->id;
	in.info[1] = (uint32_t)syscall(SYS_gettid);
	err = halSqCqAllocate(s->device, &in, &out);
	if (err) {
		id_in.resourceId = s->id;
		halResourceIdFree(s->device, &id_in);
		return err;
	}
	s->sq = out.sqId;
	s->cq = out.cqId;
	return DRV_ERROR_NONE;
}

static enum generation generation_of(uint32_t device)
{
	int64_t version = 0;

	if (halGetDeviceInfo(device, MODULE_TYPE_SYSTEM, INFO_TYPE_VERSION, &version))
		return STARS_V1;
	switch (version >> 8 & 0xff) {
	case 1:
	case 2:
		return HWTS;
	case 6:
	case 7:
		return STARS_V2;
	default:
		return STARS_V1;
	}
}

struct stream *stream_new(struct context *ctx)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->device = ctx->device;
	s->generation = generation_of(ctx->device);
	if (allocate_queue(s)) {
		free(s);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_lock(&streams_lock);
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&streams_lock);
	return s;
}

rtError_t rtStreamCreate(rtStream_t *stream, int32_t priority)
{
	struct context *ctx = context_current();

	(void)priority;
	if (!stream)
		return ACL_ERROR_RT_PARAM_INVALID;
	if (!ctx)
		return ACL_ERROR_RT_CONTEXT_NULL;
	*stream = stream_new(ctx);
	return *stream ? ACL_SUCCESS : ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
}

static void stream_free(struct stream *s)
{
	struct halSqCqFreeInfo queue = { .sqId = s->sq, .cqId = s->cq };
	struct halResourceIdInputInfo id = { .type = DRV_STREAM_ID, .resourceId = s->id };

	pthread_mutex_lock(&streams_lock);
	for (struct stream **p = &streams; *p; p = &(*p)->next) {
		if (*p == s) {
			*p = s->next;
			break;
		}
	}
	pthread_mutex_unlock(&streams_lock);
	halSqCqFree(s->device, &queue);
	halResourceIdFree(s->device, &id);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

rtError_t rtStreamDestroy(rtStream_t stream)
{
	struct stream *s = stream;
	rtError_t err;

	if (!s)
		return ACL_ERROR_RT_PARAM_INVALID;
	err = stream_wait(s, s->sent, -1);
	stream_free(s);
	return err;
}

rtError_t rtStreamDestroyForce(rtStream_t stream)
{
	if (!stream)
		return ACL_ERROR_RT_PARAM_INVALID;
	stream_free(stream);
	return ACL_SUCCESS;
}

static rtError_t wait_for_room(struct stream *s, uint32_t want)
{
	struct halSqCqQueryInfo q = { .sqId = s->sq, .prop = DRV_SQCQ_PROP_SQ_HEAD };
	const struct timespec pause = { .tv_nsec = FULL_QUEUE_POLL_NS };

	while (s->sent + want - s->done > SQ_DEPTH - 1) {
		rtError_t err = from_driver(halSqCqQuery(s->device, &q));

		if (err)
			return err;
		s->done += (q.value[0] - s->done) % SQ_DEPTH;
		if (s->sent + want - s->done > SQ_DEPTH - 1)
			nanosleep(&pause, NULL);
	}
	return ACL_SUCCESS;
}

/* What the chip numbers otherwise than the 910B does. */
static uint8_t type_950(const struct stars_sqe *sqe)
{
	switch (sqe->type) {
	case STARS_AICORE:
		return sqe->kernel.core == STARS_CUBE ? 0 : sqe->kernel.core == STARS_VECTOR ? 1 : 2;
	case STARS_AICPU:
		return 5;
	case STARS_EVENT_RECORD:
		return 6;
	case STARS_EVENT_WAIT:
		return 7;
	case STARS_PCIE_DMA:
		return 10;
	default:
		return sqe->type;
	}
}

/* Of the process's tasks on a 950. */
static _Atomic uint32_t last_number;
static pthread_once_t first_numbered = PTHREAD_ONCE_INIT;

static void first_number(void)
{
	const char *text = getenv("NPUSIM_FIRST_TASK");

	last_number = text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

/* Called with the stream locked. A 950's tasks have a number of 32 bits in place of stream and task. */
static void number(struct stream *s, struct stars_sqe *sqe)
{
	uint32_t id;

	if (s->generation != STARS_V2) {
		sqe->stream = (uint16_t)s->id;
		sqe->task = s->next_task++;
		if (s->generation == HWTS && sqe->type == STARS_SDMA)
			sqe->type = 9;
		return;
	}
	pthread_once(&first_numbered, first_number);
	id = atomic_fetch_add(&last_number, 1);
	sqe->stream = (uint16_t)id;
	sqe->task = (uint16_t)(id >> 16);
	sqe->own.kind = sqe->type;
	sqe->type = type_950(sqe);
}

static uint32_t number_of(const struct stream *s, const struct stars_sqe *sqe)
{
	return s->generation == STARS_V2 ? sqe->stream | (uint32_t)sqe->task << 16 : sqe->task;
}

/* Called with the stream locked. */
static rtError_t send_locked(struct stream *s, struct stars_sqe *sqe)
{
	struct halTaskSendInfo info = {
		.sqId = s->sq, .timeout = -1, .sqe_addr = (uint8_t *)sqe, .sqe_num = 1
	};
	rtError_t err = wait_for_room(s, 1);

	if (err)
		return err;
	number(s, sqe);
	err = from_driver(halSqTaskSend(s->device, &info));
	if (err)
		return err;
	s->sent++;
	return ACL_SUCCESS;
}

/* The first task of a new round of ids reports the round to the device. */
static rtError_t send_flip(struct stream *s)
{
	struct stars_sqe flip = { .type = STARS_PLACE_HOLDER,
				  .holder = { .kind = STARS_FLIP, .flip = ++s->flip } };

	return send_locked(s, &flip);
}

rtError_t stream_send(struct stream *s, struct stars_sqe *sqe, uint64_t *position)
{
	rtError_t err = ACL_SUCCESS;

	pthread_mutex_lock(&s->lock);
	if (s->next_task == 0 && s->sent > 0 && s->generation != STARS_V2)
		err = send_flip(s);
	if (!err)
		err = send_locked(s, sqe);
	if (position)
		*position = s->sent;
	pthread_mutex_unlock(&s->lock);
	last_task = number_of(s, sqe);
	last_stream = s->id;
	return err;
}

rtError_t stream_wait(struct stream *s, uint64_t position, int32_t timeout)
{
	rtError_t err = from_driver(sqcq_wait_done(s->device, s->sq, position, timeout));

	if (err)
		return err;
	event_collect(s->device);
	return ACL_SUCCESS;
}

static uint64_t stream_sent(struct stream *s)
{
	uint64_t sent;

	pthread_mutex_lock(&s->lock);
	sent = s->sent;
	pthread_mutex_unlock(&s->lock);
	return sent;
}

rtError_t rtStreamSynchronizeWithTimeout(rtStream_t stream, int32_t timeout)
{
	struct stream *s = stream_of(stream);

	return s ? stream_wait(s, stream_sent(s), timeout) : ACL_ERROR_RT_CONTEXT_NULL;
}

rtError_t rtStreamSynchronize(rtStream_t stream)
{
	struct stream *s = stream_of(stream);

	return s ? stream_wait(s, stream_sent(s), -1) : ACL_ERROR_RT_CONTEXT_NULL;
}

/* The n-th stream of the context; streams may come and go between two calls. */
static struct stream *nth_stream(const struct context *ctx, int n)
{
	struct stream *s;

	pthread_mutex_lock(&streams_lock);
	for (s = streams; s; s = s->next) {
		if (s->ctx == ctx && n-- == 0)
			break;
	}
	pthread_mutex_unlock(&streams_lock);
	return s;
}

rtError_t streams_synchronize(const struct context *ctx, int32_t timeout)
{
	rtError_t err = ACL_SUCCESS;
	struct stream *s;

	for (int n = 0; !err && (s = nth_stream(ctx, n)); n++)
		err = stream_wait(s, stream_sent(s), timeout);
	return err;
}

rtError_t rtsStreamGetId(rtStream_t stream, int32_t *id)
{
	struct stream *s = stream_of(stream);

	if (!s)
		return ACL_ERROR_RT_CONTEXT_NULL;
	*id = (int32_t)s->id;
	return ACL_SUCCESS;
}

rtError_t rtGetStreamId(rtStream_t stream, int32_t *id)
{
	return rtsStreamGetId(stream, id);
}

rtError_t rtStreamGetSqid(const rtStream_t stream, uint32_t *sqId)
{
	struct stream *s = stream_of(stream);

	if (!s)
		return ACL_ERROR_RT_CONTEXT_NULL;
	*sqId = s->sq;
	return ACL_SUCCESS;
}

rtError_t rtStreamGetCqid(const rtStream_t stream, uint32_t *cqId, uint32_t *logicCqId)
{
	struct stream *s = stream_of(stream);

	if (!s)
		return ACL_ERROR_RT_CONTEXT_NULL;
	*cqId = *logicCqId = s->cq;
	return ACL_SUCCESS;
}

rtError_t rtGetTaskIdAndStreamID(uint32_t *taskId, uint32_t *streamId)
{
	*taskId = last_task;
	*streamId = last_stream;
	return ACL_SUCCESS;
}

rtError_t rtsGetThreadLastTaskId(uint32_t *taskId)
{
	*taskId = last_task;
	return ACL_SUCCESS;
}
