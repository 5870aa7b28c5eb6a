/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPUSIM_RUNTIME_INTERNAL_H
#define NPUSIM_RUNTIME_INTERNAL_H

#include "../abi/acl.h"
#include "../abi/ascend_hal.h"
#include "../abi/runtime.h"
#include "../abi/stars.h"
#include "../truth/truth.h"

#include <pthread.h>
#include <stdatomic.h>

#define SQ_DEPTH 1024

#pragma GCC visibility push(default)
ACL_API(ACL_IMPL_PROTOTYPE)
#pragma GCC visibility pop

/* How SQEs are numbered. */
enum generation { STARS_V1, STARS_V2, HWTS };

struct context {
	uint32_t device; /* the driver's number */
	int32_t user_device; /* after ASCEND_RT_VISIBLE_DEVICES */
	struct stream *default_stream;
};

struct stream {
	struct stream *next;
	struct context *ctx;
	uint32_t device, id, sq, cq;
	enum generation generation;
	pthread_mutex_t lock;
	uint16_t next_task;
	uint32_t flip;
	uint64_t sent; /* SQEs */
	uint64_t done; /* at least so many are */
};

struct event {
	uint32_t device, id, flag;
	struct stream *stream; /* of the last record */
	uint32_t sequence;
	uint64_t position; /* `sent` of that stream after the record */
	uint16_t sqe_stream, sqe_task;
	bool stamped;
	uint64_t syscnt;
	struct event *next; /* awaits its CQE */
};

struct kernel {
	struct kernel *next;
	char *name;
	uint64_t pc;
	uint32_t wave_ns;
	enum stars_core core;
};

/* The thread's context; NULL without rtSetDevice. */
struct context *context_current(void);
/* A stream handle, or the default stream for NULL; NULL without a context. */
struct stream *stream_of(rtStream_t handle);
struct stream *stream_new(struct context *ctx);
rtError_t streams_synchronize(const struct context *ctx, int32_t timeout);

/* Fills in ids and the chip's number of the kind, waits for room, sends. `position` may be NULL. */
rtError_t stream_send(struct stream *s, struct stars_sqe *sqe, uint64_t *position);
rtError_t stream_wait(struct stream *s, uint64_t position, int32_t timeout);

/* Takes the completion records that have come, if an event awaits one. */
void event_collect(uint32_t device);

rtError_t launch(const struct kernel *k, uint32_t blocks, const void *args, uint32_t args_size,
		 rtStream_t stream);

/* NULL if nothing is registered under it. */
const struct kernel *kernel_by_stub(const void *stub);
const struct kernel *kernel_by_key(void *binary, uint64_t tiling_key);

rtError_t from_driver(drvError_t err);

#endif
