/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the helper library into a running job: docs/inject.md describes how, and what is checked before. It
 * only runs when requested by the user.
 */
#ifndef NPS_INJECT_H
#define NPS_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct nps_inject_result {
	int error; /* 0, or -errno of the refusal or failure */
	pid_t tid; /* thread of the job that was redirected for a moment */
	unsigned int stops; /* times that threads were stopped, also at unusable points */
	uint64_t stopped_ns; /* longest stop, from the request on */
	uint64_t held_ns; /* time for which that thread then ran our code */
	uint64_t total_ns;
	char why[256]; /* reason of the error */
};

/*
 * Loads `library`, a path that we can read, into process `pid`. 0: it is loaded, and its constructors have
 * run. -EALREADY: the helper is loaded already. Other -errno: the job continues unchanged, and the reason
 * is in r->why. Takes up to 30 s if the job never reaches a safe point. The caller must have only one
 * thread, because this forks.
 */
int nps_inject(pid_t pid, const char *library, struct nps_inject_result *r);

/*
 * Loads the helper library into every process of the tree of `pid` that uses an NPU and does not have it.
 * Prints a line for each. 0; -errno when at least one of them remains without.
 */
int nps_inject__tree(pid_t pid, bool children);

/* Can this host and this process do it at all? The reason is in `why` if not. */
bool nps_inject__possible(char *why, size_t size);

#endif
