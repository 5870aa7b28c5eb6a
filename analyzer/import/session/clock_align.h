/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's log on the host's time line: by reads of the clock at first, then by cause and effect. */
#ifndef NPS_CLOCK_ALIGN_H
#define NPS_CLOCK_ALIGN_H

#include "import/session/session_model.h"

#include "base/map.h"
#include "model/model.h"

/* The device's counter at the start and the end of a row of the log; end 0: not seen. */
struct nps_counts {
	uint64_t start, end;
};

/* Submissions of each stream in order of time, a stream (`group` of the keys) after the other. */
struct nps_streams {
	const struct nps_key *keys; /* row: submission */
	size_t n;
};

/*
 * Fits LOG->clock, of LOG->proc and LOG->device, where there are reads of it: LOG->fitted. *KHZ becomes
 * what the counter nominally counts in a millisecond. 0 or -ENOMEM.
 */
int nps_clock_align__clock(struct nps_session *model, struct nps_device_log *log, uint64_t *khz);

/* Converts times of model->blocks to CLOCK_MONOTONIC ns; removes blocks without a time or without an end. */
void nps_clock_align__blocks(struct nps_session *model);

/* Fits the clock of every device that has reads. 0 or -ENOMEM. */
int nps_clock_align__clocks(struct nps_session *model);

/*
 * Converts times of LOGS (struct nps_log_task with counters) to CLOCK_MONOTONIC; COUNTS (struct nps_counts)
 * keeps the device's counts. Removes rows without a clock, or that the clock puts far from the capture. 0
 * or a negative errno.
 */
int nps_clock_align__logs(struct nps_session *model, struct nps_vec *logs, struct nps_vec *counts);

/*
 * No task starts before its submission, none ends after a call that waited for it. A contradiction moves
 * the clock as far as its reads admit. MATCH: the submission of each row of LOGS, or NPS_NONE; model->syncs
 * are sorted by cover. 0 or -ENOMEM.
 */
int nps_clock_align__causality(struct nps_session *model, struct nps_vec *logs, const struct nps_vec *counts,
			       const uint32_t *match, const struct nps_streams *streams);

/* The error of times of the log with SUB's task, ns, against CLOCK_MONOTONIC; 0: there is none. */
uint64_t nps_clock_align__error(const struct nps_session *model, const struct nps_sub *sub);

/*
 * Rows of MODEL's table `clock` for a log that has a clock: from the begin of the capture to its end, one a
 * second or so, each with the worst error in it. 0 or a negative errno.
 */
int nps_clock_align__errors(struct nps_model *model, const struct nps_session *rec,
			    const struct nps_device_log *log);

#endif
