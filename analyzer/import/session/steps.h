/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps: the intervals between calls of the function, or begins of the label, named with --step-marker. */
#ifndef NPS_STEPS_H
#define NPS_STEPS_H

#include "import/session/session_model.h"

/* TEXT of a marker that is "label:TEXT", NULL: it is a function. */
const char *nps_step_marker_label(const char *marker);

/* N of a marker that ends in `@N` (1..4): the argument that holds the step's number; 0 if none. */
unsigned int nps_step_marker_arg(const char *marker);

/*
 * Fills the steps of every process from its marks: step i is [mark i, mark i + 1), so the last,
 * unfinished one is none. 0 or -ENOMEM.
 */
int nps_steps__build(struct nps_session *model);

/* The step of PROC that contains TIME, NPS_NONE if none does. */
uint32_t nps_steps__at(const struct nps_proc *proc, uint64_t time);

#endif
