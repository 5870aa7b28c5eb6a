/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of Python that cost time, each with its evidence: a line that makes steps slow, the line whose
 * kernels take most of the device's time, and the line that a launching thread is in while the device has
 * nothing to do. A line is that of the innermost frame which is not of an installed package.
 */
#ifndef NPS_SLOW_LINES_H
#define NPS_SLOW_LINES_H

#include "findings/findings.h"

#define NPS_FIND_SLOW_STEPS "python_slow_steps" /* the id of a finding that stands before all others */

/* Adds the findings. 0 or negative errno. */
int nps_slow_lines__find(struct nps_find *find);

/*
 * The innermost of FRAMES (outermost first, joined by `;`) that is in no installed package; else the
 * innermost. Returns its length, *LINE is where it begins.
 */
size_t nps_slow_lines__own(const char *frames, const char **line);

#endif
