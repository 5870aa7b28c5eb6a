/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of a capture: what runs, sampled by the clock, and what sleeps, into stacks.nps. A thread of its own takes
 * them; nothing is unwound or named beside the job but the kernel's functions, at the end.
 */
#ifndef NPS_STACKS_H
#define NPS_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel_side.h"
#include "record_opts.h"
#include "session_writer.h"

struct nps_budget;
struct nps_stacks;

/* Attaches and starts the thread; stacks.nps is in the session. -errno after a line that says why. */
int nps_stacks__start(struct nps_kernel_side *k, struct nps_session *s, const struct nps_stacks_opts *opts,
		      struct nps_stacks **out);

/* A process is watched from now on. True: what it has mapped is to be listed. NULL does nothing. */
bool nps_stacks__watch(struct nps_stacks *st, pid_t pid);

/* Writes what it has mapped, as of SINCE (CLOCK_MONOTONIC ns). 0, or -ETIME: the budget is spent, try again. */
int nps_stacks__list(struct nps_stacks *st, pid_t pid, uint64_t since, struct nps_budget *budget);

/* Ends sampling, writes who is still asleep, ends the thread. NULL does nothing. */
void nps_stacks__stop(struct nps_stacks *st);

/* Writes the names of the kernel's functions, which takes a while. NULL does nothing. */
void nps_stacks__finish(struct nps_stacks *st);
void nps_stacks__free(struct nps_stacks *st);

/* Stacks written, and those that were lost: no room, or the file is full. NULL: 0. */
uint64_t nps_stacks__written(const struct nps_stacks *st);
uint64_t nps_stacks__lost(const struct nps_stacks *st);

/* Stacks that are there but could be written without the copy only, because the file has reached its limit. */
uint64_t nps_stacks__uncopied(const struct nps_stacks *st);

#endif
