/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that waited for a stream, or for a whole device, found by the stream. */
#ifndef NPS_SYNCS_H
#define NPS_SYNCS_H

#include "import/session/session_model.h"

/* Orders MODEL's syncs by process, device, stream and what they cover; has to come before the walks. */
void nps_syncs__sort(struct nps_session *model);

/* Those of one stream and those of its whole device, ascending by what they cover. */
struct nps_sync_walk {
	const struct nps_sync *own, *own_end, *whole, *whole_end;
};

/* A walk over the syncs of STREAM (UINT16_MAX: only of the whole device) of DEVICE of process row PROC. */
struct nps_sync_walk nps_syncs__of(const struct nps_session *model, uint32_t proc, uint16_t device,
				   uint16_t stream);

/* The next one; NULL: that was the last. */
const struct nps_sync *nps_syncs__next(struct nps_sync_walk *walk);

#endif
