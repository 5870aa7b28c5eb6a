/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes and the whole host use of CPUs, memory, disks and network, sampled by a thread of its own into host.nps
 * (docs/session-format.md). Its own use of CPU is bounded: it takes fewer samples rather than a quarter of a CPU.
 */
#ifndef NPS_HOST_SYS_H
#define NPS_HOST_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record_opts.h"

struct nps_stream;
struct nps_host_sys;

struct nps_host_sys_opts {
	size_t sz;
	unsigned int parts, hz;
	bool all; /* every process of the host */
	int net_map; /* BPF map of bytes by process, -1: none */
	uint64_t begin; /* CLOCK_MONOTONIC ns: what was born later began with nothing used */
};

struct nps_host_sys_counts {
	uint64_t samples, records;
	uint64_t late; /* samples that were left out because the one before took too long */
	uint64_t missed; /* processes, threads and devices for which there was no room or descriptor */
	uint64_t cpu_ns; /* that sampling took */
};

/* Starts the thread, which writes to `stream` alone. -errno. */
int nps_host_sys__start(const struct nps_host_sys_opts *opts, struct nps_stream *stream,
			struct nps_host_sys **out);

/* Process `pid` is one of the job's from now on. NULL as h: nothing is sampled. */
void nps_host_sys__target(struct nps_host_sys *h, pid_t pid);

/* The sample that is under way is the last one. Does not wait for it. */
void nps_host_sys__end(struct nps_host_sys *h);

/* A last sample, then the thread ends. */
void nps_host_sys__stop(struct nps_host_sys *h);
void nps_host_sys__free(struct nps_host_sys *h);

/* So far; 0 of everything for NULL. */
void nps_host_sys__counts(const struct nps_host_sys *h, struct nps_host_sys_counts *counts);

#endif
