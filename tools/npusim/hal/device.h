/* SPDX-License-Identifier: BSD-2-Clause */
/* One device as one process sees it: its board, its queues, the engine that works through them. */
#ifndef NPUSIM_HAL_DEVICE_H
#define NPUSIM_HAL_DEVICE_H

#include "../abi/ascend_hal.h"
#include "../abi/stars.h"
#include "../truth/truth.h"
#include "board.h"

#define DEVICES_MAX 16
#define SQ_DEPTH 1024
#define SQS_MAX 512
#define EVENTS_MAX 65536
#define EVENT_HISTORY 4
#define CQ_DEPTH 4096

struct task {
	struct truth_task facts;
	struct stars_sqe sqe;
	bool start_logged;
	uint64_t accounted; /* what it moved is, until then */
};

/*
 * Counts of SQEs since the queue was made: done <= scheduled <= submitted.  A scheduled task has its start
 * and end on the device's timeline, even if these are still to come; it is done when the clock has passed
 * its end.
 */
struct sq {
	bool in_use;
	uint32_t id;
	uint16_t stream;
	uint32_t flip;
	uint64_t done, scheduled, submitted;
	uint64_t last_end;
	struct task ring[SQ_DEPTH];
};

struct board_event {
	uint32_t latest;
	uint32_t sequence[EVENT_HISTORY];
	uint64_t when[EVENT_HISTORY];
};

struct channel;
struct prof_event;

struct device {
	uint32_t id;
	struct board board;
	bool opened; /* has had a context: the engine runs */
	_Atomic bool lost; /* the context, to a reset */
	pthread_mutex_t lock; /* everything below */
	pthread_cond_t progress; /* something was scheduled or done for a queue that was stuck */
	pthread_t engine;
	bool stopping;
	bool logged; /* the truth file has its line */
	bool idle; /* the engine sleeps until someone rings */
	uint32_t random;
	int nsqs;
	struct sq *sqs[SQS_MAX];
	struct board_event *events;
	uint8_t event_in_use[EVENTS_MAX / 8];
	struct logic_cqe cq[CQ_DEPTH];
	uint64_t cq_head, cq_tail;
	uint32_t resets; /* of the board, as far as this process has noticed */
	struct channel *channels[PROF_CHANNELS]; /* made on first use, kept */
	int task_channels; /* active ones that want tasks */
	struct prof_event *batch;
	size_t batched, batch_room;
	uint64_t next_batch;
};

/* NULL for an id that does not exist. Maps the board on first use; does not open the device. */
struct device *device_get(uint32_t id);
/* A device that was got before, else NULL. */
struct device *device_known(uint32_t id);
/* Opened devices only, else NULL. */
struct device *device_opened(uint32_t id);
uint32_t device_count(void);
drvError_t device_open(uint32_t id);

drvError_t engine_start(struct device *d);
void engine_stop(struct device *d);

/* With the device locked: */
void sched_submit(struct device *d, struct sq *q, const struct stars_sqe *sqe, uint64_t submit);
void sched_all(struct device *d);
void sched_retire(struct device *d, uint64_t now);

uint32_t model_waves(const struct chip *chip, const struct stars_sqe *sqe);
uint32_t model_random(struct device *d, uint32_t below);
uint64_t model_duration(struct device *d, const struct stars_sqe *sqe);

/* With the device locked: */
void prof_task_ended(struct device *d, const struct sq *q, const struct task *t);
/* Writes the device's line of the truth file, once. */
void device_truth(struct device *d);
/* A reset has ended what the process had there. */
void device_lost(struct device *d);
/* Passes what happened until now to the channel's reader. Returns when to come again, 0 if never. */
uint64_t prof_deliver(struct device *d, uint64_t now);

#define SUB_TASKS_MAX 64
/* How kernels for both kinds of cores run as FFTS+ tasks. */
struct ffts {
	uint32_t contexts, threads; /* of each context; a sub-task each */
	bool vector_leads; /* whether a record of the whole is about vector cores */
	uint32_t others; /* blocks of the other sort beside each block */
};

/* NULL: the task is none. */
const struct ffts *task_ffts(const struct device *d, const struct task *t);
/* Sub-tasks run side by side: they begin one after the other, and end in another order. */
uint64_t ffts_start(const struct ffts *f, const struct task *t, uint32_t k);
uint64_t ffts_end(const struct ffts *f, const struct task *t, uint32_t k);

void sleep_ns(uint64_t ns);

#endif
