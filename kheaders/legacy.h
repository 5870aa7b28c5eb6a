/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Shared by bpf/legacy.bpf.c and its loader: data that old kernels, which have no constants, read from
 * maps.
 */
#ifndef NPS_LEGACY_H
#define NPS_LEGACY_H

#include "catalog.h"

#define NPS_LEGACY_DEPTH 8 /* probed calls nested in one thread */
#define NPS_LEGACY_SQES 8 /* records of one halSqTaskSend call */
#define NPS_LEGACY_SPECS 512

/* A row of the catalogue, by its number. */
struct nps_legacy_spec {
	unsigned char flags; /* NPS_P_* */
	struct nps_slot slot[4];
};

/* A group of probes, by its number (bpf_shared.h). */
struct nps_legacy_group {
	unsigned long long entered; /* calls, if they are counted */
	unsigned int state, pad; /* NPS_GROUP_* */
};

#endif
