/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the helper library into a job that runs: docs/inject.md says how, and what is checked before.
 * Nothing here happens unless it is asked for.
 */
#ifndef NPS_INJECT_H
#define NPS_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct nps_inject_result {
	int error; /* 0, or -errno of the refusal or failure */
	pid_t tid; /* thread of the job that was led astray for a moment */
	unsigned int stops; /* of its threads, refused places among them */
	uint64_t stopped_ns; /* the longest of them, from the request on */
	uint64_t held_ns; /* how long that thread was ours afterwards, running */
	uint64_t total_ns;
	char why[256]; /* of error, in words */
};

/*
 * Loads `library`, a path that we can read, into process `pid`. 0: it is loaded, and its constructors have run.
 * -EALREADY: the helper is there.
 * -errno: the job goes on as it was, and r->why says why. Takes up to 30 s when the job is never in a safe place.
 * Call it while the caller has one thread: it forks.
 */
int nps_inject(pid_t pid, const char *library, struct nps_inject_result *r);

/* Loads the helper library into every process of the tree of `pid` that uses an NPU and has it not.
 * Prints a line for each. 0; -errno when at least one of them stays without. */
int nps_inject__tree(pid_t pid, bool children);

/* Can this host and this process do it at all? `why` says why not. */
bool nps_inject__possible(char *why, size_t size);

#endif
