/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks of one job side by side. Collectives with all ranks show which rank came last: the others wait for
 * it, and it waits least. Of each rank only its collectives and steps are kept.
 */
#ifndef NPS_RANKS_H
#define NPS_RANKS_H

#include "base/string_table.h"
#include "base/vec.h"
#include "findings/table.h"
#include "model/model.h"

struct cJSON;

struct nps_ranks {
	int tmpfd;
	struct nps_strings strings;
	struct nps_vec list; /* struct rank */
};

/* Temporary files go to TMPFD, which is not owned. */
void nps_ranks__init(struct nps_ranks *ranks, int tmpfd);
void nps_ranks__free(struct nps_ranks *ranks);

/* Adds a rank from MODEL, which is derived; NAME identifies one without a number. 0 or negative errno. */
int nps_ranks__add(struct nps_ranks *ranks, const struct nps_model *model, const char *name);

/* In *DOCUMENT the comparison with its own list `findings`; NULL for fewer than two ranks. 0 or -ENOMEM. */
int nps_ranks__compare(struct nps_ranks *ranks, struct cJSON **document);

/* Prints it. */
void nps_ranks__show(const struct nps_view *view);

#endif
