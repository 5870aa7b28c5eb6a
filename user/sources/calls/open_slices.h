/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What threads were doing when the capture ended: their current slices, page faults not reported yet, and
 * the calls that they are in (open_calls.c) become records too.
 */
#ifndef NPS_OPEN_SLICES_H
#define NPS_OPEN_SLICES_H

#include "attach/bpf_loader.h"
#include "attach/probe_rows.h"
#include "attach/reader.h"

struct nps_open_slices {
	struct nps_event *events;
	size_t n, room;
	size_t lost; /* for lack of memory */
	uint64_t begin, end; /* of the capture, CLOCK_MONOTONIC ns */
};

/*
 * Collects an event, with NPS_F_OPEN, for each thread with a slice or wait that has not ended, and its page
 * faults. Call it as soon as there are no targets any more: the BPF maps do not change then, but /proc does.
 */
void nps_open_slices__collect(struct nps_open_slices *slices, struct nps_bpf_loader *k);

/*
 * The same for threads of PID that never left or got a CPU during the capture: those that run at the end
 * have run since its start, such as a thread that polls on a CPU of its own.
 */
void nps_open_slices__collect_unseen(struct nps_open_slices *slices, struct nps_bpf_loader *k, pid_t pid);

/*
 * Collects an event, with NPS_F_UNFINISHED, for each call of the job that has begun and not returned.
 * `shed`: probes of this tier and above were dropped before the end, so it is unknown whether their calls
 * have returned. Returns -errno after a warning if that fails.
 */
int nps_open_calls__collect(struct nps_open_slices *slices, struct nps_bpf_loader *k, enum nps_tier shed);

/* Keeps a copy of an event. */
void nps_open_slices__keep(struct nps_open_slices *slices, const struct nps_event *e);

/* Writes the events once the reader has stopped, and frees them. Returns how many were lost. */
size_t nps_open_slices__write(struct nps_open_slices *slices, struct nps_reader *reader);

#endif
