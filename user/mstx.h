/* SPDX-License-Identifier: BSD-2-Clause */
/* Which marks and ranges of the job are recorded: --mstx, --mstx-domain-include, --mstx-domain-exclude. */
#ifndef NPS_MSTX_H
#define NPS_MSTX_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf_shared.h"
#include "event.h"

struct nps_mstx_list {
	char name[NPS_MSTX_DOMAINS][NPS_STR_MAX]; /* padded with zeros, as the kernel side looks them up */
	unsigned n;
};

struct nps_mstx_opts {
	bool off;
	struct nps_mstx_list include, exclude;
};

/* Adds the names of "A,B"; those that are there already are left out. -EINVAL: one is empty or too long, or they are too many. */
int nps_mstx__parse(struct nps_mstx_list *list, const char *text);

/* Settles contradictions as the vendor's profiler does, with a line each: include wins, and without marks there are no domains. */
void nps_mstx__settle(struct nps_mstx_opts *opts);

enum nps_mstx_mode nps_mstx__mode(const struct nps_mstx_opts *opts);

/* The names that the mode speaks of; NULL: it speaks of none. */
const struct nps_mstx_list *nps_mstx__list(const struct nps_mstx_opts *opts);

/* Are marks without a domain, whose domain the results call "default", to be recorded? */
bool nps_mstx__wants_default(const struct nps_mstx_opts *opts);

#endif
