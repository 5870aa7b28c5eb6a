/* SPDX-License-Identifier: BSD-2-Clause */
/* The task queue of torch results: what operators put into it, and what another thread ran from it. */
#ifndef NPS_DERIVE_QUEUE_H
#define NPS_DERIVE_QUEUE_H

#include "base/map.h"
#include "model/model.h"

struct nps_queue {
	const struct nps_torch_table *torch;
	size_t dequeues, end; /* enqueues are the rows [0, dequeues), dequeues [dequeues, end) */
	size_t next; /* dequeue that begins next */
	struct nps_map running; /* gtid -> latest dequeue */
};

/* Finds the rows. */
void nps_queue__init(struct nps_queue *queue, const struct nps_model *m);

/* In *ROW the dequeue of thread GTID at TIME, which only grows; NPS_NONE: none. 0 or negative errno. */
int nps_queue__at(struct nps_queue *queue, uint64_t gtid, uint64_t time, uint32_t *row);

/* Back to the first one. */
void nps_queue__restart(struct nps_queue *queue);

void nps_queue__free(struct nps_queue *queue);

#endif
