/* SPDX-License-Identifier: BSD-2-Clause */
/* What threads were doing when the capture ended: their last stretches are records too. */
#ifndef NPS_OPEN_SLICES_H
#define NPS_OPEN_SLICES_H

#include "kernel_side.h"
#include "reader.h"

struct nps_open_slices {
	struct nps_event *events; /* with NPS_F_OPEN */
	size_t n, room;
	size_t lost; /* for want of memory */
	uint64_t begin, end; /* of the capture, CLOCK_MONOTONIC ns */
};

/*
 * Collects an event for each thread of which the kernel side has an open stretch or wait. To be called as soon as there are no targets
 * any more: what the kernel side knows then stays, but what /proc tells of the threads does not.
 */
void nps_open_slices__collect(struct nps_open_slices *slices, struct nps_kernel_side *k);

/*
 * The same for threads of PID that were never seen to leave a CPU or to get one: those that run at the end have run since
 * the capture began, as one does that polls on a CPU of its own.
 */
void nps_open_slices__collect_unseen(struct nps_open_slices *slices, struct nps_kernel_side *k, pid_t pid);

/* Writes them, once the reader has stopped, and forgets them. */
void nps_open_slices__write(struct nps_open_slices *slices, struct nps_reader *reader);

#endif
