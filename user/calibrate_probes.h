/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of this very program that are probed to measure what that costs: one for each class and way of probing. */
#ifndef NPS_CALIBRATE_PROBES_H
#define NPS_CALIBRATE_PROBES_H

#include "kernel_side.h"
#include "link_set.h"
#include "probe_point.h"

/* The function whose first instruction is of the class; another one is probed at entry and return than at entry only. */
typedef void (*nps_calibration_function)(void *arg);
nps_calibration_function nps_calibration__function(enum nps_probe_class class, bool returns);

/* One that is never probed. */
void nps_calibration_plain(void *arg);

/*
 * Puts the programs of a capture on all of them, in this process alone where the kernel can tell. LINKS keeps the
 * links, those of a failure too. 0 or -errno.
 */
int nps_calibration__attach(struct nps_kernel_side *k, struct nps_links *links);

#endif
