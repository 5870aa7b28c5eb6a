/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measured costs, kept until the next boot in /run/npuscope/costs, which
 * root writes and all users read. They are only used if no other user can
 * have written them, and if boot, kernel, build and processor are the same.
 */
#ifndef NPS_COST_CACHE_H
#define NPS_COST_CACHE_H

#include <sys/types.h>

#include "capture/cost.h"

struct nps_capability;

/* What costs depend on: the lines of text with which the file begins. */
struct nps_cost_key {
	char text[1024];
};

/* Path of the cache. Each directory from TOP on must belong to OWNER and be writable by nobody else. */
struct nps_cost_cache {
	const char *top; /* "/" */
	/* nested directories, NULL-terminated; the last one is created if it is missing */
	const char *const *path;
	uid_t owner;
};

/* The one of this machine: /run/npuscope, owned by root. */
extern const struct nps_cost_cache nps_cost_cache_here;

/*
 * Fills KEY with boot, kernel, build, processor, and the ways of probing
 * in CAP. -errno if one of them is unknown.
 */
int nps_cost_key__fill(const struct nps_capability *cap, struct nps_cost_key *key);

/*
 * 0; -ENOENT: there is none, -EPERM: another user may have written it, -ESTALE: boot, kernel, build or
 * processor differ, -EBADMSG: it is damaged; or another -errno. *COST is unchanged then.
 */
int nps_cost_cache__read(const struct nps_cost_cache *cache, const struct nps_cost_key *key,
			 struct nps_cost *cost);

/* Atomic. -EPERM: only the owner may write. -EBUSY: another process is writing. */
int nps_cost_cache__write(const struct nps_cost_cache *cache, const struct nps_cost_key *key,
			  const struct nps_cost *cost);

#endif
