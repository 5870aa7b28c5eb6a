/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver's CQEs say of tasks that nobody measured. */
#ifndef NPS_COMPLETIONS_H
#define NPS_COMPLETIONS_H

#include "session/place.h"
#include "session/recording.h"

/*
 * Appends a sync to MODEL for each CQE that the driver took in (record --driver tasks): when its interrupt came, the task that
 * it names had ended, and with it those before it in its stream. STREAMS: MODEL's submissions. 0 or a negative errno.
 *
 * Of processes in containers nothing: the driver knows their devices by other numbers. Nor of a 950, whose tasks have numbers
 * of 32 bits that its CQEs are not known to hold.
 */
int nps_completions__add(struct nps_recording *model, const struct nps_streams *streams);

#endif
