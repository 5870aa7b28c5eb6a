/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of a capture: running threads, sampled by the clock, and sleeping
 * ones, into stacks.nps. A thread of its own reads them; nothing is unwound
 * during the capture, and only the kernel's functions are named, at the end.
 */
#ifndef NPS_STACKS_H
#define NPS_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/bpf_loader.h"
#include "capture/record_opts.h"
#include "core/session_writer.h"

struct nps_budget;
struct nps_stacks;

/* Attaches and starts the thread, and creates stacks.nps in the session. 0, or -errno after a warning. */
int nps_stacks__start(struct nps_bpf_loader *k, struct nps_session_writer *s,
		      const struct nps_stacks_opts *opts, struct nps_stacks **out);

/* Watches a process from now on. True: its mappings have to be listed. NULL: does nothing. */
bool nps_stacks__watch(struct nps_stacks *st, pid_t pid);

/*
 * Writes its mappings, valid from SINCE (CLOCK_MONOTONIC ns). 0, or -ETIME: the budget is spent, try again.
 */
int nps_stacks__list(struct nps_stacks *st, pid_t pid, uint64_t since, struct nps_budget *budget);

/* Ends sampling, writes the threads that are still asleep, ends the thread. NULL: does nothing. */
void nps_stacks__stop(struct nps_stacks *st);

/* Writes the names of the kernel's functions, which takes a while. NULL: does nothing. */
void nps_stacks__finish(struct nps_stacks *st);
void nps_stacks__free(struct nps_stacks *st);

/* Stacks written, and stacks lost because a ring or the file was full. NULL: 0. */
uint64_t nps_stacks__written(const struct nps_stacks *st);
uint64_t nps_stacks__lost(const struct nps_stacks *st);

/* Stacks written without the copy of the stack because the file has reached its limit. */
uint64_t nps_stacks__uncopied(const struct nps_stacks *st);

#endif
