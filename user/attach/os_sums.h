/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of short system calls, which BPF programs keep, as events. */
#ifndef NPS_OS_SUMS_H
#define NPS_OS_SUMS_H

#include "event.h"
#include "attach/bpf_loader.h"

typedef void (*nps_os_sum_fn)(void *ctx, const struct nps_event *e);

/*
 * Passes the sums of the idle table to `fn`, and makes the emptied table the current one. The time between
 * two calls must be long enough for a running BPF program to end: a second is plenty. 0 or -errno.
 */
int nps_os_sums__drain(struct nps_bpf_loader *k, nps_os_sum_fn fn, void *ctx);

/* Passes the rest of them, once the programs are detached. 0 or -errno. */
int nps_os_sums__finish(struct nps_bpf_loader *k, nps_os_sum_fn fn, void *ctx);

#endif
