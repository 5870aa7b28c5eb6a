/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes and threads whose use of the host is sampled. The job's are read each time; if the whole host
 * is watched, of the other processes those that use CPU, and the idle ones now and then. Files stay open in
 * between; memory for a process or thread is allocated when it is first found, and kept.
 */
#ifndef NPS_HOST_TASKS_H
#define NPS_HOST_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sources/host/host_out.h"

struct nps_host_tasks;

struct nps_host_tasks_opts {
	size_t sz;
	bool cpu, mem, disk; /* what to sample of each */
	int net_map; /* pid -> struct nps_net_bytes, -1: none */
	bool all; /* every process of the host, not only targets */
	uint64_t begin; /* CLOCK_MONOTONIC ns: counters of processes started later began at 0 */
};

/* 0 or -ENOMEM. `out` is not owned and must outlive it. */
int nps_host_tasks__new(const struct nps_host_tasks_opts *opts, struct nps_host_out *out,
			struct nps_host_tasks **tasks);
void nps_host_tasks__free(struct nps_host_tasks *tasks);

/* Process `pid` belongs to the job from now on. */
void nps_host_tasks__target(struct nps_host_tasks *tasks, pid_t pid);

/* Samples all that are due and writes what has changed to `out`. */
void nps_host_tasks__scan(struct nps_host_tasks *tasks);

/* Writes the last sample of those that have not changed since. */
void nps_host_tasks__last(struct nps_host_tasks *tasks);

/* Processes and threads that were not sampled for lack of room or descriptors. */
uint64_t nps_host_tasks__missed(const struct nps_host_tasks *tasks);

#endif
