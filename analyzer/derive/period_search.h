/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the search for periods: anchors, which begin segments, and kinds, as which segments repeat. */
#ifndef NPS_PERIOD_SEARCH_H
#define NPS_PERIOD_SEARCH_H

#include "derive/period_text.h"
#include "derive/periods.h"

#define NPS_KIND_MIN 3 /* equal segments that make a kind */
#define NPS_KINDS_TOP 8 /* kinds that others are compared with */
#define NPS_NEAR_MIN 0.6 /* share of a kind that a similar segment begins and ends with */

struct nps_period_kind {
	uint64_t hash;
	uint32_t start, len; /* of its first segment */
	uint32_t count, segment; /* segment: number of the first one */
	uint32_t stamp, number;
};

/* Kinds of the segments between boundaries; used again for other boundaries. */
struct nps_period_kinds {
	const struct nps_period_text *text;
	struct nps_vec slots; /* struct nps_period_kind: a hash table */
	struct nps_vec used; /* uint32_t: slots of kinds, by first appearance */
	uint32_t stamp;
	uint32_t top[NPS_KINDS_TOP], ntop; /* slots of repeated kinds, by launches in them */
	uint64_t covered, distinct; /* launches in repeated kinds; in one of each of them */
	double bits; /* that name the kinds of all segments */
	uint64_t budget; /* comparisons that are left */
};

/* For at most SEGMENTS segments of TEXT. 0 or -ENOMEM; nps_period_kinds__free() in any case. */
int nps_period_kinds__init(struct nps_period_kinds *kinds, int dirfd, const struct nps_period_text *text,
			   size_t segments);

/* Counts the kinds of the COUNT - 1 segments between BOUNDS. */
void nps_period_kinds__count(struct nps_period_kinds *kinds, const uint32_t *bounds, size_t count);

/* The kind of the segment of the last count, NULL unless it is repeated. */
struct nps_period_kind *nps_period_kinds__find(struct nps_period_kinds *kinds, size_t from, size_t to);

/*
 * The repeated kind that the segment begins and ends like, and in *SAME how many of its launches that are;
 * NULL if it is similar to none.
 */
struct nps_period_kind *nps_period_kinds__similar(struct nps_period_kinds *kinds, size_t from, size_t to,
						  size_t *same);

struct nps_period_kind *nps_period_kinds__top(struct nps_period_kinds *kinds, uint32_t i);

void nps_period_kinds__free(struct nps_period_kinds *kinds);

/* Boundaries of the iterations, before it is known which launch begins an iteration. */
struct nps_period_cut {
	const struct nps_period_input *in;
	const struct nps_period_text *text;
	struct nps_period_kinds *kinds;
	const uint32_t *anchors; /* ascending */
	size_t count;
	uint32_t closing; /* an inner repetition is closed by launches that end here, NPS_NONE: none */
};

/* Finds which launch begins an iteration, and fills steps, kinds and confidence. 0 or -ENOMEM. */
int nps_period_cut__run(const struct nps_period_cut *cut, struct nps_periods *found);

/*
 * Sets the confidence of FOUND, of whose launches MATCHED repeat, and removes its steps if they may be none,
 * with a reason. 0 or -ENOMEM.
 */
int nps_period_judge(const struct nps_period_input *in, const struct nps_period_text *text,
		     struct nps_periods *found, uint64_t matched);

#endif
