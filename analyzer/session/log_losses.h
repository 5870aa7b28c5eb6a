/* SPDX-License-Identifier: BSD-2-Clause */
/* What of the devices' logs was lost before anybody read it. */
#ifndef NPS_LOG_LOSSES_H
#define NPS_LOG_LOSSES_H

#include "session/import.h"
#include "session/place.h"

/*
 * Fills in `lost` and `rounds` of MODEL's logs, and model->losses.device_records, and says on stderr which rings were
 * overwritten. STREAMS are MODEL's submissions, whose `task_row` is a row of ROWS or NPS_NONE; COUNTS is what the device
 * counted at each of ROWS. 0 or -ENOMEM.
 */
int nps_log_losses__count(struct nps_recording *model, const struct nps_streams *streams,
			  const struct nps_log_task *rows, const struct nps_counts *counts);

#endif
