/* SPDX-License-Identifier: BSD-2-Clause */
/* What completion records (CQEs) say of tasks that nobody measured. */
#ifndef NPS_COMPLETIONS_H
#define NPS_COMPLETIONS_H

#include "session/place.h"
#include "session/recording.h"

struct nps_event;

/* Keeps a record of kind CQE of process PROC in MODEL->cqes, unless it tells of an error or could not be read. 0 or -ENOMEM. */
int nps_completions__keep(struct nps_recording *model, uint32_t proc, const struct nps_event *ev);

/*
 * Appends a sync to MODEL for each completion record: the task that it names had ended by then, and with it those before it in
 * its stream. STREAMS: MODEL's submissions. 0 or a negative errno.
 *
 * Of those that the driver took in (record --driver tasks) it is the moment of its interrupt. Of processes in containers nothing:
 * the driver knows their devices by other numbers. Nor of a 950, whose tasks have numbers of 32 bits that its CQEs are not
 * known to hold.
 *
 * Of those that the runtime collected (MODEL->cqes) it is the end of its call, and where the record has the device's time of
 * an event, a timing is appended too. Only of a 910B: what other chips write is another record.
 */
int nps_completions__add(struct nps_recording *model, const struct nps_streams *streams);

#endif
