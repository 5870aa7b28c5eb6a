/* SPDX-License-Identifier: BSD-2-Clause */
/* Control files of the jobs' task logs: with them the vendor's tools read the logs as they are. */
#ifndef NPS_CAPTURE_CONTROLS_H
#define NPS_CAPTURE_CONTROLS_H

#include "capture.h"

/*
 * What the driver says of its devices nobody else does: has it asked. Of those of a container, which have other numbers there,
 * it is not.
 */
void nps_controls__ask(struct nps_capture *c);

/* Writes them with what is known, and ends the logs. */
void nps_controls__write(struct nps_capture *c);

#endif
