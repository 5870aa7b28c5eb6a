/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time of the job's host threads went, step by step: every moment of a thread counts for exactly one part,
 * the first of these that holds:
 *
 *   cpu_wait     it could run and had no CPU
 *   interrupts   it had a CPU, and an interrupt ran there
 *   faults       it was in a major page fault: its page was read, or waited for
 *   device_wait  it was in a CANN call that returns when the device is done: synchronisation, blocking copy or model
 *   unknown      nobody saw whether it ran: before its first record and after its last one, or between lost ones
 *   asleep:      lock_wait in a futex or semaphore call; io_wait in a call of files, pipes or sockets, or uninterruptibly in
 *                no call at all; sleep elsewhere, polling included
 *   running:     io_calls and other_calls in system calls; cann in CANN calls; user elsewhere
 *
 * So the parts add up to the length of the step. Of system calls that were summed up (host_sums.h) it is known how long they
 * took in each second of a thread, not when in it.
 */
#ifndef NPS_DERIVE_HOST_H
#define NPS_DERIVE_HOST_H

#include "model/model.h"

#include <stdbool.h>

enum nps_host_part {
	NPS_HOST_USER,
	NPS_HOST_CANN,
	NPS_HOST_IO_CALLS,
	NPS_HOST_OTHER_CALLS,
	NPS_HOST_DEVICE_WAIT,
	NPS_HOST_LOCK_WAIT,
	NPS_HOST_CPU_WAIT,
	NPS_HOST_IO_WAIT,
	NPS_HOST_FAULTS,
	NPS_HOST_INTERRUPTS,
	NPS_HOST_SLEEP,
	NPS_HOST_NOT_SEEN,
	NPS_HOST_PARTS
};

/*
 * Fills host_breakdown, step by step and thread by thread, of the threads that launch work and of the main thread, or, where
 * nothing is launched, of all. Nothing without `run`. 0 or negative errno.
 */
int nps_derive__host(struct nps_model *model);

/* The parts of a row of host_breakdown, ns; interrupts that were not recorded are 0. */
void nps_host_breakdown__parts(const struct nps_model *model, size_t row, uint64_t parts[NPS_HOST_PARTS]);

/* Fills what os_thread says of scheduling, with rows for threads that have none. 0 or negative errno. */
int nps_derive__threads(struct nps_model *model);

#endif
