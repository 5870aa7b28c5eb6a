/* SPDX-License-Identifier: BSD-2-Clause */
/* Selection of the job's marks and ranges: --mstx, --mstx-domain-include, --mstx-domain-exclude. */
#ifndef NPS_MSTX_H
#define NPS_MSTX_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf_shared.h"
#include "event.h"

struct nps_mstx_list {
	char name[NPS_MSTX_DOMAINS][NPS_STR_MAX]; /* padded with zeros, like the keys of the BPF map */
	unsigned n;
};

struct nps_mstx_opts {
	bool off;
	struct nps_mstx_list include, exclude;
};

/*
 * Adds the names of "A,B"; duplicates are skipped. 0; -EINVAL: a name is
 * empty or too long, or there are too many.
 */
int nps_mstx__parse(struct nps_mstx_list *list, const char *text);

/*
 * Resolves contradictions as the vendor's profiler does, with a line each: include wins, and without marks
 * there are no domains.
 */
void nps_mstx__settle(struct nps_mstx_opts *opts);

enum nps_mstx_mode nps_mstx__mode(const struct nps_mstx_opts *opts);

/* The names that the mode includes or excludes; NULL: none. */
const struct nps_mstx_list *nps_mstx__list(const struct nps_mstx_opts *opts);

/* Are marks without a domain, whose domain is called "default" in results, recorded? */
bool nps_mstx__wants_default(const struct nps_mstx_opts *opts);

#endif
