/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills struct nps_summary (analyze.h). */
#ifndef NPS_SUMMARY_H
#define NPS_SUMMARY_H

#include "analyze.h"
#include "import/session/session_model.h"
#include "model/model.h"

/* What MODEL holds, without a path. 0 or -ENOMEM. */
int nps_summary__fill(struct nps_summary_proc *proc, const struct nps_model *model);

/* What only the recording knows of its process PROC_ROW. */
void nps_summary__process(struct nps_summary_proc *proc, const struct nps_session *session,
			  uint32_t proc_row);

/* Appends PROC. 0 or -ENOMEM. */
int nps_summary__add(struct nps_summary *summary, const struct nps_summary_proc *proc);

/* Who took CPU from the job, if the whole host was watched. */
void nps_summary__neighbours(struct nps_summary *summary, const struct nps_session *session);

/* Adds what the session lost, and marks the summary as incomplete if it lost anything. */
void nps_summary__losses(struct nps_summary *summary, const struct nps_session *session);

#endif
