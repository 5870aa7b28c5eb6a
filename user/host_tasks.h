/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes and threads whose use of the host is sampled. The job's are looked at each time; of the others, when the whole
 * host is watched, those that use CPU, and the idle ones now and then to see whether they still are. Files stay open
 * between looks; memory is taken when a process or thread is first seen, and kept.
 */
#ifndef NPS_HOST_TASKS_H
#define NPS_HOST_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host_out.h"

struct nps_host_tasks;

struct nps_host_tasks_opts {
	size_t sz;
	bool cpu, mem, disk; /* what to sample of each */
	int net_map; /* pid -> struct nps_net_bytes, -1: none */
	bool all; /* every process of the host, not only targets */
	uint64_t begin; /* CLOCK_MONOTONIC: what was born later began with nothing used */
};

/* 0 or -ENOMEM. `out` must live longer. */
int nps_host_tasks__new(const struct nps_host_tasks_opts *opts, struct nps_host_out *out,
			struct nps_host_tasks **tasks);
void nps_host_tasks__free(struct nps_host_tasks *tasks);

/* Process `pid` is one of the job's from now on. */
void nps_host_tasks__target(struct nps_host_tasks *tasks, pid_t pid);

/* Looks at all that is due and puts what has changed into `out`. */
void nps_host_tasks__look(struct nps_host_tasks *tasks);

/* Puts what was seen last, of those that did not change since. */
void nps_host_tasks__last(struct nps_host_tasks *tasks);

/* Processes and threads that were not sampled: no room, or no descriptor was left. */
uint64_t nps_host_tasks__missed(const struct nps_host_tasks *tasks);

#endif
