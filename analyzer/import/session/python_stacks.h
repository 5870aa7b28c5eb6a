/* SPDX-License-Identifier: BSD-2-Clause */
/* Python stacks of a session: python.nps, and the calls that have such a stack. */
#ifndef NPS_PYTHON_STACKS_H
#define NPS_PYTHON_STACKS_H

#include "import/session/session_model.h"
#include "model/model.h"

void nps_python_stacks__init(struct nps_python_stacks *stacks, int tmpfd);
void nps_python_stacks__free(struct nps_python_stacks *stacks);

/*
 * Adds a chunk of python.nps. Code objects can follow the stacks that they are in, so the file is read twice:
 * first with STACKS false. 0, 1: the chunk belongs into another file, or -ENOMEM.
 */
int nps_python_stacks__add(struct nps_session *rec, bool stacks, const struct nps_chunk *chunk,
			   const void *payload);

/*
 * Fills model->py_launch with the stacks of PROC's calls, and model->frame with those of its operators,
 * whose `callchain` is a row of the session's stacks: after nps_torch_ops__fill() and
 * nps_planned_calls__fill(). 0 or negative errno.
 */
int nps_python_stacks__fill(struct nps_model *model, struct nps_session *rec, const struct nps_proc *proc);

#endif
