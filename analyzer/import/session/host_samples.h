/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of a session's host.nps: samples of the host, by kind, in order of time. Untrusted. */
#ifndef NPS_HOST_SAMPLES_H
#define NPS_HOST_SAMPLES_H

#include "base/map.h"
#include "base/string_table.h"
#include "base/vec.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "session.h"

#define NPS_HOST_CPUS 4096 /* numbers of CPUs that are distinguished */

/* A process beside the job, and what it took from it. */
struct nps_neighbour {
	uint32_t pid, name; /* text */
	uint64_t run; /* ns on a CPU in all */
	uint64_t contended; /* ns of it on CPUs on which threads of the job waited meanwhile */
};

struct nps_host_samples {
	bool requested; /* according to session.json there are some */
	bool all; /* of the whole host, not only of the job */
	struct nps_vec cpus, systems, threads, processes, memory, disks, cards; /* struct nps_host_... */
	struct nps_vec names; /* struct nps_host_named */
	struct nps_map name_of; /* what << 32 | id -> row of names */
	struct nps_vec neighbours; /* struct nps_neighbour, what took most first */
	uint64_t waited; /* ns that threads of the job waited for a CPU while others ran on it */
	uint64_t strange; /* samples with impossible times */
};

struct nps_host_named {
	uint32_t text; /* the name that it had last */
	uint32_t flags; /* NPS_HOST_* */
	uint64_t speed;
};

void nps_host_samples__init(struct nps_host_samples *host, int tmpfd);
void nps_host_samples__free(struct nps_host_samples *host);

/* Rows of one chunk, with times within [FIRST, LAST]. 1: it is of no kind of ours. 0 or negative errno. */
int nps_host_samples__add(struct nps_host_samples *host, struct nps_strings *strings,
			  const struct nps_chunk *chunk, const void *payload, uint64_t first, uint64_t last);

/* Name and flags of ID, NULL: it has none. */
const struct nps_host_named *nps_host_samples__name(const struct nps_host_samples *host,
						    enum nps_host_what what, uint32_t id);

static inline bool nps_host_samples__is_target(const struct nps_host_samples *host, uint32_t pid)
{
	const struct nps_host_named *name = nps_host_samples__name(host, NPS_HOST_PROCESS, pid);

	return name && name->flags & NPS_HOST_TARGET;
}

/*
 * Finds who used CPU time that the job waited for: in each tenth of a second and on each CPU, what others
 * ran there, at most as long as threads of the job were runnable there without running. 0 or negative
 * errno.
 */
int nps_host_samples__contend(struct nps_host_samples *host, uint64_t begin, uint64_t end);

#endif
