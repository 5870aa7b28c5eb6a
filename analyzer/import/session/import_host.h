/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of the host as tables of a model. */
#ifndef NPS_IMPORT_HOST_H
#define NPS_IMPORT_HOST_H

#include "import/session/session_model.h"
#include "model/model.h"

/*
 * Fills the tables of the host's counters as from CANN's own raw data: with what process PID used or, if
 * PID is 0, with what the whole host used. Times are those of the session. 0 or negative errno.
 */
int nps_import__host(struct nps_model *model, const struct nps_session *session, uint32_t pid);

#endif
