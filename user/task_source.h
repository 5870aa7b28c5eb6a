/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where device times come from: the helper in the job, or the job's own profiler, which comes first. It is watched whatever
 * was asked for, so that the helper and the sampler can let go (docs/task-log.md).
 */
#ifndef NPS_TASK_SOURCE_H
#define NPS_TASK_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "kernel_side.h"
#include "process.h"

struct nps_capture;
struct nps_task_source;

/* NULL in *OUT with 0: the kernel cannot watch anything, which has been reported. */
int nps_task_source__open(struct nps_capture *c, struct nps_task_source **out);
void nps_task_source__free(struct nps_task_source *t);

/* A libascend_hal.so of the job. */
void nps_task_source__library(struct nps_task_source *t, int fd, const char *path, struct nps_budget *budget);

/* At least every 100 ms: takes what has come, and settles who holds which device. */
void nps_task_source__turn(struct nps_task_source *t);

/* Takes what has come, and no more: while the capture ends. */
void nps_task_source__drain(struct nps_task_source *t);

/* Readable when a turn should not wait: a thread of the job is about to start a channel. -1: nothing is watched. */
int nps_task_source__fd(const struct nps_task_source *t);

/* Is what the job's profiler wants still being let go of? */
bool nps_task_source__waits(const struct nps_task_source *t);

/* Reads clocks of devices whose log is the job's own, from outside the job. */
void nps_task_source__tick(struct nps_task_source *t);

/* Before the processes are read for the last time. */
void nps_task_source__detach(struct nps_task_source *t);

/* The process P is another program now, or has ended. What it read before that is to be taken first: nps_task_source__drain(). */
void nps_task_source__gone(struct nps_task_source *t, const struct nps_process *p);

/* Adds to the session the devices of which the job's own profilers told. */
void nps_task_source__describe(const struct nps_task_source *t, cJSON *devices);

/* Bytes that the job's own profilers read and that were not copied; calls of theirs that were not told: who holds what may be
 * wrong then. */
uint64_t nps_task_source__lost(const struct nps_task_source *t);
uint64_t nps_task_source__lost_events(const struct nps_task_source *t);

#endif
