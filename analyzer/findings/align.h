/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which collectives of two ranks are one and the same. Their names are numbered from the beginning of each rank's capture, which
 * is not the same moment: then equal names are different collectives. Ranks of one host have one clock, and a
 * collective ends on all ranks at nearly the same time.
 */
#ifndef NPS_ALIGN_H
#define NPS_ALIGN_H

#include "base/util.h"

#include <stdbool.h>

#define NPS_ALIGN_CLOSE 100000 /* ns that ends of one collective may differ without a reason in the clocks */
#define NPS_ALIGN_NOBODY UINT64_MAX /* key of a collective that nobody else is known to have taken part in */

struct nps_collective {
	uint64_t key, start, end; /* key: name, group and how many of that name came before */
	uint64_t group, kind; /* group 0: not known; kind: the name up to its numbers */
	uint32_t name, place; /* place: how many of the group came before */
};

/*
 * Gives the collectives of Y, which are of one group and in order of their place, the keys of those of X that they belong to,
 * if their own are wrong. *UNKNOWN: they are wrong, and nothing fits; the keys of all are NPS_ALIGN_NOBODY then. 0 or -ENOMEM.
 */
int nps_align__group(const struct nps_collective *x, size_t nx, struct nps_collective *y, size_t ny,
		     bool *unknown);

#endif
