/* SPDX-License-Identifier: BSD-2-Clause */
/* Overlap Analysis: when the device computed, communicated, only communicated, or did nothing. */
#ifndef NPS_OVERLAP_H
#define NPS_OVERLAP_H

#include "vec.h"

#include <stdint.h>

/* Values of ENUM_OVERLAP_ANALYSIS_TYPE. */
enum nps_overlap_type {
	NPS_OVERLAP_COMPUTE = 0,
	NPS_OVERLAP_COMM = 1,
	NPS_OVERLAP_COMM_ALONE = 2,
	NPS_OVERLAP_FREE = 3
};

struct nps_span {
	uint64_t start, end;
	uint32_t type; /* enum nps_overlap_type */
	uint32_t device;
};

/* Lengths, ns. first and last bound everything; both 0 if there is nothing. */
struct nps_overlap_sums {
	uint64_t computing, communication, not_overlapped, free;
	uint64_t first, last;
};

/*
 * COMPUTE and COMM, each sorted by start, are merged where they overlap; what they cover and leave
 * uncovered goes to SPANS (may be NULL), type by type, with DEVICE. Computing, not overlapped
 * communication and free tile [first, last] without a gap. 0 or -ENOMEM.
 */
int nps_overlap__build(const struct nps_span *compute, size_t ncompute, const struct nps_span *comm,
		       size_t ncomm, uint32_t device, struct nps_vec *spans, struct nps_overlap_sums *sums);

#endif
