/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which collectives of two ranks are one and the same. Their names are numbered from the begin of each
 * rank's capture. If the captures began at different moments, equal names belong to different collectives.
 * Ranks of one host have one clock, and a collective ends on all ranks at nearly the same time.
 */
#ifndef NPS_ALIGN_H
#define NPS_ALIGN_H

#include "base/util.h"

#include <stdbool.h>

#define NPS_ALIGN_CLOSE 100000 /* ns that ends of one collective may differ without a reason in the clocks */
#define NPS_ALIGN_NOBODY UINT64_MAX /* key of a collective of which no other rank's part is known */

struct nps_rank_op {
	uint64_t key, start, end; /* key: name, group and how many of that name came before */
	uint64_t group, kind; /* group 0: not known; kind: the name up to its numbers */
	uint32_t name, ordinal; /* how many of the group came before */
};

/*
 * The collectives of Y are of one group and in the order in which they came. If their keys are wrong, each
 * gets the key of the collective of X that it belongs to. *UNKNOWN: they are wrong, and nothing fits; the
 * keys of all are NPS_ALIGN_NOBODY then. 0 or -ENOMEM.
 */
int nps_align__group(const struct nps_rank_op *x, size_t nx, struct nps_rank_op *y, size_t ny, bool *unknown);

#endif
