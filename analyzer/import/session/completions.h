/* SPDX-License-Identifier: BSD-2-Clause */
/* What completion records (CQEs) prove about tasks that were not measured. */
#ifndef NPS_COMPLETIONS_H
#define NPS_COMPLETIONS_H

#include "import/session/clock_align.h"
#include "import/session/session_model.h"

struct nps_event;

/*
 * Keeps a record of kind CQE of process PROC in MODEL->cqes, unless it reports an error or could not be
 * read. 0 or -ENOMEM.
 */
int nps_completions__keep(struct nps_session *model, uint32_t proc, const struct nps_event *ev);

/*
 * Appends a sync to MODEL for each completion record: the task that it names had ended by then, and with it
 * those before it in its stream. STREAMS: MODEL's submissions. 0 or a negative errno.
 *
 * Its time, for records that the driver read (record --driver tasks), is that of the driver's interrupt.
 * Records of processes in containers are not used: the driver knows their devices by other numbers. Nor are
 * those of a 950, whose tasks have numbers of 32 bits that its CQEs are not known to hold.
 *
 * For records that the runtime collected (MODEL->cqes) it is the end of its call; and where the record has
 * the device's time of an event, a timing is appended too. Only of a 910B: other chips write other records.
 */
int nps_completions__add(struct nps_session *model, const struct nps_streams *streams);

#endif
