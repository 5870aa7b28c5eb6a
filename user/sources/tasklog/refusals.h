/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profilers of jobs that were refused a device because a helper had it: the helpers leave it free for a
 * while, so that the profiler finds it free when it tries again. Such a refusal is reported by the job, so
 * it only affects the helpers of the same owner.
 */
#ifndef NPS_REFUSALS_H
#define NPS_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nps_log_owner;
struct nps_refusal;

struct nps_refusals {
	struct nps_refusal *v; /* one per owner */
	size_t n;
};

/*
 * A profiler of OWNER (NULL: none, ignored) was refused DEVICE, which is
 * left free UNTIL, CLOCK_MONOTONIC ns. 0 or -ENOMEM.
 */
int nps_refusals__add(struct nps_refusals *r, const struct nps_log_owner *owner, uint32_t device,
		      uint64_t until);

/* Do the helpers of OWNER's processes leave DEVICE free NOW? */
bool nps_refusals__hold(const struct nps_refusals *r, const struct nps_log_owner *owner, uint32_t device,
			uint64_t now);

void nps_refusals__free(struct nps_refusals *r);

#endif
