/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Costs that were measured, kept until the machine is booted again: in /run/npuscope/costs, which root writes and everybody
 * reads. What is there is believed only if nobody but root can have written it, and if it is of this boot, kernel, build and
 * processor.
 */
#ifndef NPS_COST_CACHE_H
#define NPS_COST_CACHE_H

#include <sys/types.h>

#include "cost.h"

struct nps_capability;

/* What costs depend on: lines of text, with which the file begins. */
struct nps_cost_key {
	char text[1024];
};

/* Where the cache is. Each directory from TOP on must be OWNER's, and nobody else's to write. */
struct nps_cost_cache {
	const char *top; /* "/" */
	const char *const *
		path; /* directories in each other, NULL-terminated: the last one is made when it is missing */
	uid_t owner;
};

/* The one of this machine: /run/npuscope, root's. */
extern const struct nps_cost_cache nps_cost_cache_here;

/* Of this boot, kernel, build and processor, and the ways of probing in CAP. -errno if that cannot be found out. */
int nps_cost_key__fill(const struct nps_capability *cap, struct nps_cost_key *key);

/*
 * 0; -ENOENT: there is none, -EPERM: somebody else may have written it, -ESTALE: it is of another boot, kernel, build
 * or processor, -EBADMSG: it is damaged; or another -errno. *COST is untouched then.
 */
int nps_cost_cache__read(const struct nps_cost_cache *cache, const struct nps_cost_key *key,
			 struct nps_cost *cost);

/* Whole or not at all. Only the owner writes: -EPERM. -EBUSY: somebody else does just now. */
int nps_cost_cache__write(const struct nps_cost_cache *cache, const struct nps_cost_key *key,
			  const struct nps_cost *cost);

#endif
