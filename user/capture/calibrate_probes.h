/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of this program that are probed to measure what that costs:
 * one for each class and way of probing.
 */
#ifndef NPS_CALIBRATE_PROBES_H
#define NPS_CALIBRATE_PROBES_H

#include "attach/bpf_loader.h"
#include "attach/link_set.h"
#include "attach/probe_point.h"

/*
 * The function whose first instruction is of the class; RETURNS: the one
 * to probe at entry and return, else at entry only.
 */
typedef void (*nps_calibration_function)(void *arg);
nps_calibration_function nps_calibration__function(enum nps_probe_class class, bool returns);

/* A function that is never probed. */
void nps_calibration_plain(void *arg);

/*
 * Attaches the programs of a capture to all of them, for this process only where the kernel supports that.
 * The links are added to LINKS, even after a failure. 0 or -errno.
 */
int nps_calibration__attach(struct nps_bpf_loader *k, struct nps_links *links);

#endif
