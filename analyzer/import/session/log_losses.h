/* SPDX-License-Identifier: BSD-2-Clause */
/* What was lost of the devices' logs before it could be read. */
#ifndef NPS_LOG_LOSSES_H
#define NPS_LOG_LOSSES_H

#include "import/session/import.h"
#include "import/session/clock_align.h"

/*
 * Fills in `lost`, `rounds` and `uncounted` of MODEL's logs, and model->losses.device_records, reports on
 * stderr the rings that were overwritten, and removes incomplete counters from LOGS (struct nps_log_task).
 * STREAMS are MODEL's submissions, whose `task_row` is a row of LOGS or NPS_NONE, MATCH the other way
 * round; COUNTS (struct nps_counts) is the device's counter at each row. 0 or -ENOMEM.
 */
int nps_log_losses__count(struct nps_session *model, const struct nps_streams *streams, struct nps_vec *logs,
			  const struct nps_vec *counts, const uint32_t *match);

#endif
