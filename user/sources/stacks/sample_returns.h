/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from BPF with what samples lack, probed returns and the id of the Python stack (struct
 * nps_sample_returns), kept until the kernel's sampler delivers the sample that they belong to, because the
 * two come through different rings. Both are in order for each CPU.
 */
#ifndef NPS_SAMPLE_RETURNS_H
#define NPS_SAMPLE_RETURNS_H

#include <stddef.h>
#include <stdint.h>

#include "stack.h"

struct nps_sample_returns_queue;

/* For CPUs below CPUS. The caller frees it; NULL: no memory. */
struct nps_sample_returns_queue *nps_sample_returns__new(unsigned int cpus);
void nps_sample_returns__free(struct nps_sample_returns_queue *q);

/*
 * Copies a message of SIZE bytes. 0, -EINVAL: it is invalid; -ENOMEM; -ENOSPC: the queue was full, and the
 * oldest was dropped.
 */
int nps_sample_returns__add(struct nps_sample_returns_queue *q, const void *message, size_t size);

/*
 * The message for the sample of thread TID on CPU at TIME (CLOCK_MONOTONIC
 * ns) with user space address IP (0: it has none); NULL: none. Query the
 * samples of a CPU in their order. The result is valid until the next call.
 */
const struct nps_sample_returns *nps_sample_returns__next(struct nps_sample_returns_queue *q, uint32_t cpu,
							  uint32_t tid, uint64_t time, uint64_t ip);

#endif
