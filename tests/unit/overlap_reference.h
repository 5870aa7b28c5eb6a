/* SPDX-License-Identifier: BSD-2-Clause */
/* Overlap Analysis from whole lists of intervals: the witness of the streaming one in derive/sweep.h. */
#ifndef OVERLAP_REFERENCE_H
#define OVERLAP_REFERENCE_H

#include "base/vec.h"
#include "derive/sweep.h"

struct nps_span {
	uint64_t start, end;
	uint32_t type; /* enum nps_overlap_type */
	uint32_t device;
};

/*
 * COMPUTE and COMM, each sorted by start, are merged where they overlap; what they cover and leave
 * uncovered goes to SPANS (may be NULL), type by type, with DEVICE. Computing, not overlapped
 * communication and free tile [first, last] without a gap. 0 or -ENOMEM.
 */
int nps_overlap__build(const struct nps_span *compute, size_t ncompute, const struct nps_span *comm,
		       size_t ncomm, uint32_t device, struct nps_vec *spans, struct nps_overlap_sums *sums);

#endif
