/* SPDX-License-Identifier: BSD-2-Clause */
/* Where steps come from. */
#ifndef NPS_STEP_SOURCE_H
#define NPS_STEP_SOURCE_H

/*
 * What is requested. AUTO: markers; of sessions without any, steps of PyTorch's optimizer, else a label that
 * recurs, else what repeats in the launches.
 */
enum nps_step_source {
	NPS_STEPS_AUTO,
	NPS_STEPS_MARKER,
	NPS_STEPS_OPTIMIZER,
	NPS_STEPS_LABEL,
	NPS_STEPS_PERIOD,
	NPS_STEPS_NONE
};

#endif
