/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps from labels of PyTorch: those of its optimizer, or one that recurs. */
#ifndef NPS_STEP_LABELS_H
#define NPS_STEP_LABELS_H

#include "model/model.h"

/*
 * Fills `step` and `found_step` of MODEL as model->step_source allows: AUTO is OPTIMIZER, and LABEL where
 * it has none. TIMES: when the N launches of the process were submitted, in order. No rows: there are no
 * steps. 0 or negative errno.
 */
int nps_step_labels__fill(struct nps_model *model, const uint64_t *times, size_t n);

/* Sets the source and the confidence of steps in the model's metadata. 0 or -ENOMEM. */
int nps_step_metadata__set(struct nps_model *model, const char *source);

#endif
