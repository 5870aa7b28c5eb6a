/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of aclnn operators, where they were probed. */
#ifndef NPS_OP_ENDS_H
#define NPS_OP_ENDS_H

#include "import/session/session_model.h"

/*
 * Sets the duration of each event that begins a phase of an operator to the time until its end was seen.
 * Others keep 0: the probe of their end is missing, the capture ended, or an exception left them.
 * keys: rows of the events by thread and start, struct nps_key.
 */
void nps_op_ends__find(struct nps_session *model, const struct nps_vec *keys);

#endif
