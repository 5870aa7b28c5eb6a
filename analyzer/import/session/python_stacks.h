/* SPDX-License-Identifier: BSD-2-Clause */
/* Python stacks of a session: python.nps, and the calls that have such a stack. */
#ifndef NPS_PYTHON_STACKS_H
#define NPS_PYTHON_STACKS_H

#include "import/session/session_model.h"
#include "model/model.h"
#include "python_stack.h"

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

/* A stack of the session, innermost first. */
struct nps_python_frames {
	size_t n;
	uint32_t texts[NPS_PY_FRAMES + 1];
	bool entries[NPS_PY_FRAMES + 1]; /* C called the frame; only in stacks of samples and sleeps */
	bool cut; /* the outermost text is a mark that frames are missing there */
};

/* The frames of the stack with that id; out->n 0: the session has none. 0 or negative errno. */
int nps_python_stacks__frames(struct nps_session *rec, uint64_t id, struct nps_python_frames *out);

#endif
