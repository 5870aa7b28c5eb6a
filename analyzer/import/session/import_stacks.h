/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_IMPORT_STACKS_H
#define NPS_IMPORT_STACKS_H

#include "import/session/session_model.h"
#include "model/model.h"

/*
 * Unwinds and names the stacks of process PROC_ROW in stacks.nps, into `stack` of MODEL. A session without
 * that file has none. 0 or a negative errno; damage and missing names are reported.
 */
int nps_import__stacks(struct nps_model *model, struct nps_session *rec, uint32_t proc_row);

#endif
