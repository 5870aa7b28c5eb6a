/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside a device's thread: device_thread.c takes turns and talks to others, device_segments.c has its channels and clocks. */
#ifndef NPS_DEVICE_THREAD_IMPL_H
#define NPS_DEVICE_THREAD_IMPL_H

#include "device_dcmi.h"
#include "device_stream.h"
#include "device_thread.h"
#include "prof_control.h"

#define NPS_DEVICE_MOST_STREAMS 32
#define NPS_DEVICE_MOST_SEGMENTS 512 /* after that nothing is started again */
#define NPS_DEVICE_READ_BYTES (256U << 10) /* of `buf` */

/* A PROF_* directory. */
struct nps_device_segment {
	struct nps_prof_control control;
	struct nps_prof_sync sync;
	cJSON *sample;
	unsigned int open; /* streams that fill it */
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
	struct nps_device_lib lib; /* a connection of its own: a call may take seconds */
	uint32_t device;
	struct nps_device_info info;
	pthread_t thread;
	atomic_bool stop, settled, failed;
	atomic_uint_fast64_t sign; /* CLOCK_MONOTONIC ns: the last call into the driver was about to begin */
	atomic_int error; /* of the disk */
	struct nps_log_account account;
	atomic_bool slowed_told; /* the account: others look at it */
	bool ended_told;
	size_t first; /* stream that is drained first the next time: the last ones may get nothing */
	struct nps_device_stream streams[NPS_DEVICE_MOST_STREAMS];
	size_t n_streams;
	struct nps_device_segment *segments[NPS_DEVICE_MOST_SEGMENTS];
	size_t n_segments;
	struct nps_dcmi_place place;
	bool placed;
	uint64_t clock_due, usage_due, netdev_due, listed; /* CLOCK_MONOTONIC ns */
	bool netdev_told, gave_up;
	char *buf;

	pthread_mutex_t lock; /* of what is below: others look at it */
	pthread_cond_t wake; /* the thread, which sleeps between two turns */
	bool release, released; /* channels are to be let go of; they have been */
	struct nps_device_counts counts;
	cJSON *described;
};

/* --- device_thread.c --- */

/* Notes ERR (-errno, 0: none) if it is the first. */
void nps_device_thread__disk_error(struct nps_device_thread *t, int err);

/* Are all channels to be closed, for the job's own profiler? */
bool nps_device_thread__is_to_let_go(struct nps_device_thread *t);

/* --- device_segments.c: for the thread alone --- */

/* Channels that are asked for and that the device has. 0, -ENOMEM, or what the driver returned. */
int nps_device_segments__list(struct nps_device_thread *t);

/* Starts all channels that are due, together: into one segment. */
void nps_device_segments__start_due(struct nps_device_thread *t);

/* Reads what the open channels have, as far as the budget goes; what fails is started afresh later. */
void nps_device_segments__drain(struct nps_device_thread *t);

/* Hands to the kernel what is buffered of open channels. */
void nps_device_segments__flush(struct nps_device_thread *t);

/* Closes all channels, and with them the segments. */
void nps_device_segments__stop(struct nps_device_thread *t);

/* Cores that a helper counts by task cannot be sampled beside it: it was asked for a task log, which comes first. */
void nps_device_segments__leave_shared(struct nps_device_thread *t);

/* Writes the device's clocks against the host's, as far as the driver tells them. */
void nps_device_segments__sample_clocks(struct nps_device_thread *t);

/* NULL does nothing. */
void nps_device_segments__free_one(struct nps_device_segment *g);

#endif
