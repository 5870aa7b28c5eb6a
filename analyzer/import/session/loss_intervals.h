/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of a process in which records were lost. A conclusion from two records may be wrong if one is from
 * before such a time, or from within it, and the other from after it.
 */
#ifndef NPS_LOSS_INTERVALS_H
#define NPS_LOSS_INTERVALS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct nps_loss_intervals {
	struct nps_vec spans;
};

void nps_loss_intervals__init(struct nps_loss_intervals *intervals, int tmpfd);
void nps_loss_intervals__free(struct nps_loss_intervals *intervals);

/* Something of process PROC was lost from FROM to TO. In any order, before finish. 0 or a negative errno. */
int nps_loss_intervals__add(struct nps_loss_intervals *intervals, uint32_t proc, uint64_t from, uint64_t to);

/* After the last one. 0 or a negative errno. */
int nps_loss_intervals__finish(struct nps_loss_intervals *intervals);

/* Was something of process PROC lost at a time from FROM to TO, both included? */
bool nps_loss_intervals__overlap(const struct nps_loss_intervals *intervals, uint32_t proc, uint64_t from,
				 uint64_t to);

#endif
