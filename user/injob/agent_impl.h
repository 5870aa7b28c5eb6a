/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the parts of the helper: its memory and ring (agent_ring.c), and the wait of the job's profiler
 * for a device (agent_yield.c).
 */
#ifndef NPS_AGENT_IMPL_H
#define NPS_AGENT_IMPL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "agent.h"
#include "session.h"

static inline uint64_t nps_agent_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static inline uint32_t nps_agent_load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void nps_agent_store(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Adds 1 to the word and wakes all threads of this process or the collector that wait on it. */
void nps_agent_wake(uint32_t *word);

/* Creates the memory that npuscope maps; NULL: failed. It is never freed. */
struct nps_agent_control *nps_agent_ring__create(void);

/*
 * Writes a block with its PAYLOAD of head->len bytes into the ring;
 * counts it as lost if there is no room. From any thread.
 */
void nps_agent_ring__put(const struct nps_agent_block *head, const void *payload);

/*
 * Call once, before there are other threads. OWN_PID: this process's, by which a forked child is recognised.
 */
void nps_agent_yield__init(struct nps_agent_control *ctl, pid_t own_pid);

/*
 * A capture begins: threads of the job wait for devices again. The first call installs the handler of the
 * signal that the probe sends.
 */
void nps_agent_yield__begin(void);

#endif
