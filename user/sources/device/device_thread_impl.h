/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of a device's thread: device_thread.c has its loop and what others call, device_segments.c its
 * channels and clocks.
 */
#ifndef NPS_DEVICE_THREAD_IMPL_H
#define NPS_DEVICE_THREAD_IMPL_H

#include "driver/device_dcmi.h"
#include "driver/prof_control.h"
#include "sources/device/device_stream.h"
#include "sources/device/device_thread.h"

#define NPS_DEVICE_MOST_STREAMS 32
#define NPS_DEVICE_MOST_SEGMENTS 512 /* after that no channel is started again */
#define NPS_DEVICE_READ_BYTES (256U << 10) /* size of `buf` */

/* A PROF_* directory. */
struct nps_device_segment {
	struct nps_prof_control control;
	struct nps_prof_sync sync;
	cJSON *sample;
	unsigned int open; /* number of streams that fill it */
	uint64_t started, ended; /* CLOCK_MONOTONIC_RAW ns */
	struct nps_device_start {
		uint16_t channel;
		uint64_t before, after; /* CLOCK_MONOTONIC_RAW ns around the start */
	} starts[NPS_DEVICE_MOST_STREAMS];
	size_t n_starts;
	struct nps_prof_file netdev;
	bool has_netdev;
};

struct nps_device_thread {
	struct nps_device_common *common;
	struct nps_device_lib lib; /* a connection of its own, because a call may take seconds */
	uint32_t device;
	struct nps_device_info info;
	pthread_t thread;
	atomic_bool stop, settled, failed;
	atomic_uint_fast64_t sign; /* CLOCK_MONOTONIC ns just before the last call into the driver */
	atomic_int error; /* of the disk */
	struct nps_log_account account;
	atomic_bool slowed_reported; /* about the account; read by other threads */
	bool ended_reported;
	size_t first; /* stream that is drained first next time, because the last ones may get nothing */
	struct nps_device_stream streams[NPS_DEVICE_MOST_STREAMS];
	size_t n_streams;
	struct nps_device_segment *segments[NPS_DEVICE_MOST_SEGMENTS];
	size_t n_segments;
	struct nps_dcmi_unit unit;
	bool has_unit;
	uint64_t clock_due, usage_due, netdev_due, listed; /* CLOCK_MONOTONIC ns */
	bool netdev_reported, abandoned;
	char *buf;

	pthread_mutex_t lock; /* protects the members below, which other threads read */
	pthread_cond_t wake; /* wakes the thread between two turns */
	bool release, released; /* channels are to be released; they are released */
	struct nps_device_counts counts;
	cJSON *described;
};

/* --- device_thread.c --- */

/* Notes ERR (-errno, 0: none) if it is the first. */
void nps_device_thread__disk_error(struct nps_device_thread *t, int err);

/* Are all channels to be closed, for the job's own profiler? */
bool nps_device_thread__is_to_let_go(struct nps_device_thread *t);

/* --- device_segments.c: for the thread alone --- */

/* Lists requested channels that the device has. 0, -ENOMEM, or the driver's code. */
int nps_device_segments__list(struct nps_device_thread *t);

/* Starts all channels that are due, together, into one segment. */
void nps_device_segments__start_due(struct nps_device_thread *t);

/* Reads the open channels as far as the budget allows; a failed one is started again later. */
void nps_device_segments__drain(struct nps_device_thread *t);

/* Writes buffered data of open channels to their files. */
void nps_device_segments__flush(struct nps_device_thread *t);

/* Closes all channels, and with them the segments. */
void nps_device_segments__stop(struct nps_device_thread *t);

/*
 * Closes channels of cores that a helper counts by task: they cannot be sampled at the same time, and the
 * task log comes first.
 */
void nps_device_segments__leave_shared(struct nps_device_thread *t);

/* Writes the device's clocks relative to the host's, as far as the driver provides them. */
void nps_device_segments__sample_clocks(struct nps_device_thread *t);

/* NULL does nothing. */
void nps_device_segments__free_one(struct nps_device_segment *g);

#endif
