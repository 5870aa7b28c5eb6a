/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source of device times: the helper in the job, or the job's own profiler, which comes first. The
 * profiler is watched whatever the options are, so that the helper and the sampler can release devices
 * (docs/task-log.md).
 */
#ifndef NPS_TASK_SOURCE_H
#define NPS_TASK_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "attach/bpf_loader.h"
#include "capture/process.h"

struct nps_capture;
struct nps_task_source;

/* 0 or -errno. *OUT NULL with 0: the kernel cannot watch anything, which has been reported. */
int nps_task_source__open(struct nps_capture *c, struct nps_task_source **out);
void nps_task_source__free(struct nps_task_source *t);

/* Attaches to a libascend_hal.so of the job. */
void nps_task_source__library(struct nps_task_source *t, int fd, const char *path, struct nps_budget *budget);

/* Call at least every 100 ms: reads what has arrived, and decides who gets which device. */
void nps_task_source__turn(struct nps_task_source *t);

/* Only reads what has arrived: while the capture ends. */
void nps_task_source__drain(struct nps_task_source *t);

/*
 * Readable when a turn must not be delayed: a thread of the job is about
 * to start a channel. -1: nothing is watched.
 */
int nps_task_source__fd(const struct nps_task_source *t);

/* Is a device that the job's profiler wants still being released? */
bool nps_task_source__waits(const struct nps_task_source *t);

/* Reads clocks of devices whose log is the job's own, from outside the job. */
void nps_task_source__tick(struct nps_task_source *t);

/* Call before the processes are read for the last time. */
void nps_task_source__detach(struct nps_task_source *t);

/*
 * Process P has called exec or exited. Call nps_task_source__drain() first, to read what it read before that.
 */
void nps_task_source__exited(struct nps_task_source *t, const struct nps_process *p);

/* Adds the devices that the job's own profilers used to the session. */
void nps_task_source__describe(const struct nps_task_source *t, cJSON *devices);

/*
 * Bytes that the job's own profilers read and that were not copied; calls of theirs that were not reported,
 * so that the owners of channels may be wrong.
 */
uint64_t nps_task_source__lost(const struct nps_task_source *t);
uint64_t nps_task_source__lost_events(const struct nps_task_source *t);

#endif
