/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls of a thread that were only summed up: how long they took in about a second is known, not
 * when in it. A sleep counts as one of them if it is no longer than the longest of its class, and while
 * time of that class is left. The rest is subtracted evenly from the time on a CPU outside of recorded
 * calls.
 */
#ifndef NPS_HOST_SUMS_H
#define NPS_HOST_SUMS_H

#include "base/vec.h"
#include "derive/host.h"
#include "model/call_class.h"

struct nps_host_sums {
	uint64_t end; /* of the current sums, 0: there are none */
	struct nps_sum_class {
		uint64_t end, longest;
		uint64_t left; /* ns that were not assigned to a sleep yet */
	} of[NPS_OS_LOCK + 1]; /* by enum nps_os_call_class */
	uint64_t spare; /* ns in which calls without a record can have been */
	struct nps_vec shares; /* struct nps_host_share: these by window */
	size_t consumed;
};

/* What is moved between a window's parts, ns: user + cann = io + other. */
struct nps_host_moved {
	size_t window;
	uint64_t user, cann, io, other;
};

void nps_host_sums__init(struct nps_host_sums *sums, int tmpfd);
void nps_host_sums__free(struct nps_host_sums *sums);

/* Calls of CLASS between NOW and END, TOTAL ns in all, the longest of LONGEST ns. */
void nps_host_sums__add(struct nps_host_sums *sums, uint32_t class, uint64_t now, uint64_t end,
			uint64_t total, uint64_t longest);

/* The class of call in which a sleep of LENGTH ns can be at NOW, 0 none; *LEFT: how much of it, ns. */
uint32_t nps_host_sums__slept(const struct nps_host_sums *sums, uint64_t now, uint64_t length,
			      uint64_t *left);

/* NS of calls of CLASS were assigned to sleeps. */
void nps_host_sums__spend(struct nps_host_sums *sums, uint32_t class, uint64_t ns);

/* NS in which calls without a record can have been. */
void nps_host_sums__spare(struct nps_host_sums *sums, uint64_t ns);

/* NS of these were counted as the thread's own code in WINDOW, or as CANN calls. 0 or -errno. */
int nps_host_sums__note(struct nps_host_sums *sums, size_t window, bool cann, uint64_t ns);

/* Steps through the windows of the current sums. False: that was the last one, and no sums are left. */
bool nps_host_sums__next(struct nps_host_sums *sums, struct nps_host_moved *moved);

#endif
