/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel side has summed up, as events: short system calls. */
#ifndef NPS_OS_SUMS_H
#define NPS_OS_SUMS_H

#include "event.h"
#include "kernel_side.h"

typedef void (*nps_os_sum_fn)(void *ctx, const struct nps_event *e);

/*
 * Takes the sums that lie still since the last call, gives them to `fn`, and lets the kernel fill the emptied
 * table. Between two calls must be time enough for a program in the kernel to end: a second is plenty. 0 or -errno.
 */
int nps_os_sums__take(struct nps_kernel_side *k, nps_os_sum_fn fn, void *ctx);

/* The rest of them, when the programs are detached. 0 or -errno. */
int nps_os_sums__finish(struct nps_kernel_side *k, nps_os_sum_fn fn, void *ctx);

#endif
