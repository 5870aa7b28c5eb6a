/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of the driver's profiling API (prof_drv_start, prof_channel_read, prof_stop): which channels the
 * job's own profiler has open, and a copy of what it reads. Nothing is opened.
 */
#ifndef NPS_PROFILER_TAP_H
#define NPS_PROFILER_TAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/bpf_loader.h"
#include "proftap.h"

/* per drain, because a job that calls the driver in a loop writes as fast as they are read */
#define NPS_TAP_MOST_RECORDS 1024

struct nps_budget;
struct nps_profiler_tap;

/* Loads the programs. COPY: copy the bytes too. 0; -errno: the kernel refuses them. */
int nps_profiler_tap__open(struct nps_bpf_loader *k, bool copy, struct nps_profiler_tap **out);
void nps_profiler_tap__close(struct nps_profiler_tap *t);

/* Detaches every probe; what is in the ring stays. */
void nps_profiler_tap__detach(struct nps_profiler_tap *t);

/*
 * Attaches to an open libascend_hal.so, each file once. 0 or -errno;
 * -ETIME: the budget is spent, try again later.
 */
int nps_profiler_tap__attach(struct nps_profiler_tap *t, int fd, const char *path, struct nps_budget *budget);

/*
 * From now on the helper in process PID has a signal sent before a
 * thread of the job starts a channel; NULL: no longer.
 */
void nps_profiler_tap__helper(struct nps_profiler_tap *t, pid_t pid, const struct nps_tap_helper *helper);

/* Passes what has arrived to FN, in order; DATA follows E. Returns the number of events, or -errno. */
typedef void (*nps_tap_fn)(void *ctx, const struct nps_tap_event *e, const void *data);
int nps_profiler_tap__drain(struct nps_profiler_tap *t, nps_tap_fn fn, void *ctx);

/* Readable when a thread of the job is about to start a channel. */
int nps_profiler_tap__fd(const struct nps_profiler_tap *t);

/* Lost events about who has which channel: claims may be wrong then. */
uint64_t nps_profiler_tap__lost_events(const struct nps_profiler_tap *t);

/*
 * Bytes that the job's profilers read and that were lost, because the
 * ring was full or they could not be copied.
 */
uint64_t nps_profiler_tap__lost_bytes(const struct nps_profiler_tap *t);

#endif
