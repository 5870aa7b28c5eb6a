/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of a process in which something that should be known was lost. What is concluded from two records of which one
 * came before such a time, or in it, and the other one after it, may be wrong.
 */
#ifndef NPS_DOUBTS_H
#define NPS_DOUBTS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct nps_doubts {
	struct nps_vec spans;
};

void nps_doubts__init(struct nps_doubts *doubts, int tmpfd);
void nps_doubts__free(struct nps_doubts *doubts);

/* Something of process PROC was lost between FROM and TO. In any order, before finish. 0 or a negative errno. */
int nps_doubts__add(struct nps_doubts *doubts, uint32_t proc, uint64_t from, uint64_t to);

/* After the last one. 0 or a negative errno. */
int nps_doubts__finish(struct nps_doubts *doubts);

/* Was something of process PROC lost at a time from FROM to TO, both included? */
bool nps_doubts__in(const struct nps_doubts *doubts, uint32_t proc, uint64_t from, uint64_t to);

#endif
