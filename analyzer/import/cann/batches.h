/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Task ids of a stream have 16 bits. When they start again at 0 the host and the device each report a flip:
 * the batch is the number of flips before (prof-raw 4.3).
 */
#ifndef NPS_CANN_BATCHES_H
#define NPS_CANN_BATCHES_H

#include "base/map.h"
#include "base/vec.h"

struct nps_batches {
	struct nps_map stream_of; /* device << 32 | stream -> row */
	struct nps_vec streams;
	/* Where the batch of a row is kept: a flip may change those of the latest rows. */
	uint32_t *(*batch_of)(void *arg, uint32_t row);
	void *arg;
};

/* BATCH_OF returns where the batch of a row is stored, for nps_batches__flip(); ARG is passed to it. */
void nps_batches__init(struct nps_batches *batches, int dirfd, uint32_t *(*batch_of)(void *arg, uint32_t row),
		       void *arg);
void nps_batches__free(struct nps_batches *batches);

/* Task ID of a stream, reported as row ROW: sets its batch. 0 or negative errno. */
int nps_batches__task(struct nps_batches *batches, uint32_t device, uint32_t stream, uint16_t id,
		      uint32_t row);

/* A flip with its NUMBER and the FIRST id behind it. 0 or negative errno. */
int nps_batches__flip(struct nps_batches *batches, uint32_t device, uint32_t stream, uint32_t number,
		      uint32_t first);

#endif
