/* SPDX-License-Identifier: BSD-2-Clause */
/* Control files of the jobs' task logs: with them the vendor's tools read the logs as they are. */
#ifndef NPS_CAPTURE_CONTROLS_H
#define NPS_CAPTURE_CONTROLS_H

#include "capture/capture.h"

/*
 * Queries the driver about its devices, which only it can describe. Devices of containers, which are
 * numbered differently there, are not queried.
 */
void nps_controls__query(struct nps_capture *c);

/* Writes the control files from what is known, and ends the logs. */
void nps_controls__write(struct nps_capture *c);

#endif
