/* SPDX-License-Identifier: BSD-2-Clause */
/* Operators of PyTorch, nodes of its backward passes, and which operator made which node (event.h). */
#ifndef NPS_TORCH_OPS_H
#define NPS_TORCH_OPS_H

#include "import/session/session_model.h"
#include "model/model.h"

/* Is PROBE, a row of the catalogue, one whose calls belong here? */
bool nps_torch_ops__is_probe(uint32_t probe);

/*
 * Fills `torch` of MODEL from the calls of PROC. A node has the sequence number and the thread of the
 * operator that made it, if these are known: they are not if several threads got the number, or none did in
 * the capture. 0 or negative errno.
 */
int nps_torch_ops__fill(struct nps_model *model, const struct nps_session *rec, const struct nps_proc *proc);

#endif
