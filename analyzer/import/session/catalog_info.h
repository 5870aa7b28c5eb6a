/* SPDX-License-Identifier: BSD-2-Clause */
/* What the analyzer knows about a probe: the catalogue's row and what the call does. */
#ifndef NPS_CATALOG_INFO_H
#define NPS_CATALOG_INFO_H

#include <linux/types.h>
#include <stdint.h>

#include "catalog.h"
#include "event.h"

struct nps_probe_info {
	const char *symbol;
	uint8_t layer; /* enum nps_layer */
	uint8_t call; /* enum nps_call */
	uint8_t flags; /* NPS_P_* */
	struct nps_slot slot[4];
};

/* The row of PROBE, NULL for an id that the catalogue does not have. */
const struct nps_probe_info *nps_probe_info(unsigned int probe);

/* "allReduce" for the probe of HcclAllReduce, NULL if it is none of a collective. */
const char *nps_probe_collective(unsigned int probe);

/* The row of the function SYMBOL, NPS_PROBE_NONE if there is none. */
unsigned int nps_probe_of(const char *symbol);

/*
 * The argument of EV that means MEANING, in *VALUE. False if the probe has none or if it
 * could not be read from the job's memory.
 */
int nps_event_arg(const struct nps_event *ev, enum nps_meaning meaning, uint64_t *value);

#endif
