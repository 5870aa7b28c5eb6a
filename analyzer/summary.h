/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills struct nps_summary (analyze.h). */
#ifndef NPS_SUMMARY_H
#define NPS_SUMMARY_H

#include "analyze.h"
#include "result.h"

/* Appends RESULT's process; takes over PATH (may be NULL). 0 or -ENOMEM. */
int nps_summary__add(struct nps_summary *summary, const struct nps_result *result, char *path);

void nps_summary__losses(struct nps_summary *summary, const struct nps_model *model);

#endif
