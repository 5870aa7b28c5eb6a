/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What BPF sends of threads whose returns are probed (struct nps_sample_returns), kept until the kernel's sampler hands over the
 * sample that it belongs to: the two come through different rings. Of one CPU both come in order.
 */
#ifndef NPS_SAMPLE_RETURNS_H
#define NPS_SAMPLE_RETURNS_H

#include <stddef.h>
#include <stdint.h>

#include "stack.h"

struct nps_sample_returns_queue;

/* For CPUs below CPUS. Owned by the caller; NULL: no memory. */
struct nps_sample_returns_queue *nps_sample_returns__new(unsigned int cpus);
void nps_sample_returns__free(struct nps_sample_returns_queue *q);

/* Copies a message of SIZE bytes. 0, -EINVAL: it is none; -ENOMEM; -ENOSPC: so many wait that the oldest was dropped. */
int nps_sample_returns__add(struct nps_sample_returns_queue *q, const void *message, size_t size);

/*
 * What belongs to the sample of thread TID that CPU took at TIME (CLOCK_MONOTONIC ns) with the user space address IP (0: it has none);
 * NULL: nothing. Samples of a CPU are to be asked for in their order. The result is valid until the next call.
 */
const struct nps_sample_returns *nps_sample_returns__take(struct nps_sample_returns_queue *q, uint32_t cpu,
							  uint32_t tid, uint64_t time, uint64_t ip);

#endif
