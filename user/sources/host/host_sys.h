/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Use of CPUs, memory, disks and network by processes and the whole host, sampled by a thread of its own
 * into host.nps (docs/session-format.md). To limit its CPU time to a quarter of a CPU it skips samples.
 */
#ifndef NPS_HOST_SYS_H
#define NPS_HOST_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/record_opts.h"

struct nps_stream;
struct nps_host_sys;

struct nps_host_sys_opts {
	size_t sz;
	unsigned int parts, hz;
	bool all; /* every process of the host */
	int net_map; /* BPF map of bytes by process, -1: none */
	uint64_t begin; /* CLOCK_MONOTONIC ns: counters of processes started later began at 0 */
};

struct nps_host_sys_counts {
	uint64_t samples, records;
	uint64_t late; /* samples skipped because the previous one was still running */
	uint64_t missed; /* processes, threads and devices without room or descriptor */
	uint64_t cpu_ns; /* CPU time of sampling */
};

/* Starts the thread, which is then the only writer of `stream`. 0 or -errno. */
int nps_host_sys__start(const struct nps_host_sys_opts *opts, struct nps_stream *stream,
			struct nps_host_sys **out);

/* Process `pid` belongs to the job from now on. NULL as h: nothing is sampled. */
void nps_host_sys__target(struct nps_host_sys *h, pid_t pid);

/* The current sample is the last one. Does not wait for it. */
void nps_host_sys__end(struct nps_host_sys *h);

/* Takes a last sample, then ends the thread. */
void nps_host_sys__stop(struct nps_host_sys *h);
void nps_host_sys__free(struct nps_host_sys *h);

/* Counts until now; all 0 for NULL. */
void nps_host_sys__counts(const struct nps_host_sys *h, struct nps_host_sys_counts *counts);

#endif
