/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What threads were doing when the capture ended: their last stretches, the page faults that they have not told yet, and the calls
 * that they are in (open_calls.c) are records too.
 */
#ifndef NPS_OPEN_SLICES_H
#define NPS_OPEN_SLICES_H

#include "kernel_side.h"
#include "probe_rows.h"
#include "reader.h"

struct nps_open_slices {
	struct nps_event *events;
	size_t n, room;
	size_t lost; /* for want of memory */
	uint64_t begin, end; /* of the capture, CLOCK_MONOTONIC ns */
};

/*
 * Collects an event, with NPS_F_OPEN, for each thread of which the kernel side has an open stretch or wait, and its page faults. To be
 * called as soon as there are no targets any more: what the kernel side knows then stays, but what /proc tells of the
 * threads does not.
 */
void nps_open_slices__collect(struct nps_open_slices *slices, struct nps_kernel_side *k);

/*
 * The same for threads of PID that were never seen to leave a CPU or to get one: those that run at the end have run since
 * the capture began, as one does that polls on a CPU of its own.
 */
void nps_open_slices__collect_unseen(struct nps_open_slices *slices, struct nps_kernel_side *k, pid_t pid);

/*
 * Collects an event, with NPS_F_UNFINISHED, for each call of the job that has begun and not returned. `shed`: probes of this tier and
 * those above were given up before the end: whether their calls have returned is not known. Says what it cannot do, and
 * returns -errno then.
 */
int nps_open_calls__collect(struct nps_open_slices *slices, struct nps_kernel_side *k, enum nps_tier shed);

/* Keeps a copy of an event. */
void nps_open_slices__keep(struct nps_open_slices *slices, const struct nps_event *e);

/* Writes them, once the reader has stopped, and forgets them. Returns how many were lost. */
size_t nps_open_slices__write(struct nps_open_slices *slices, struct nps_reader *reader);

#endif
