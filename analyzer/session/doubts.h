/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of a process in which records were lost. A conclusion from two records may be wrong if one is from
 * before such a time, or from within it, and the other from after it.
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

/* Something of process PROC was lost from FROM to TO. In any order, before finish. 0 or a negative errno. */
int nps_doubts__add(struct nps_doubts *doubts, uint32_t proc, uint64_t from, uint64_t to);

/* After the last one. 0 or a negative errno. */
int nps_doubts__finish(struct nps_doubts *doubts);

/* Was something of process PROC lost at a time from FROM to TO, both included? */
bool nps_doubts__in(const struct nps_doubts *doubts, uint32_t proc, uint64_t from, uint64_t to);

#endif
