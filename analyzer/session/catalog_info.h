/* SPDX-License-Identifier: BSD-2-Clause */
/* What the analyzer knows about a probe: the catalogue's row and what the call does. */
#ifndef NPS_CATALOG_INFO_H
#define NPS_CATALOG_INFO_H

#include <linux/types.h>
#include <stdint.h>

#include "catalog.h"
#include "event.h"

enum nps_call_class {
	NPS_CALL_OTHER = 0,
	NPS_CALL_LAUNCH,
	NPS_CALL_MEMCPY,
	NPS_CALL_SYNC_DEVICE,
	NPS_CALL_SYNC_STREAM,
	NPS_CALL_SYNC_EVENT,
	NPS_CALL_QUERY_EVENT,
	NPS_CALL_RECORD_EVENT,
	NPS_CALL_SET_CONTEXT, /* or device */
	NPS_CALL_DESTROY_EVENT,
	NPS_CALL_COLLECTIVE,
};

struct nps_probe_info {
	const char *symbol;
	uint8_t layer; /* enum nps_layer */
	uint8_t flags; /* NPS_P_* */
	uint8_t call; /* enum nps_call_class */
	const char *collective; /* "allReduce"; NULL for others */
	struct nps_slot slot[4];
};

/* The row of PROBE, NULL for an id that the catalogue does not have. */
const struct nps_probe_info *nps_probe_info(unsigned int probe);

/*
 * The argument of EV that means MEANING, in *VALUE. False if the probe has none or if it
 * could not be read from the job's memory.
 */
int nps_event_arg(const struct nps_event *ev, enum nps_meaning meaning, uint64_t *value);

#endif
