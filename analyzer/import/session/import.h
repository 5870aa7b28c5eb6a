/* SPDX-License-Identifier: BSD-2-Clause */
/* From files to the model's tables. All input is untrusted. */
#ifndef NPS_IMPORT_H
#define NPS_IMPORT_H

#include "import/session/session_model.h"

/*
 * Reads session.json and the chunk files into MODEL. A cut or damaged file is read up to the cut, which is
 * reported on stderr and noted in model->losses.cut. Negative errno if nothing can be made of the
 * directory; the reason has been printed.
 */
int nps_import__session(struct nps_session *model, const char *path);

/* One finished (or, with end = 0, unfinished) task of a device's log. */
struct nps_log_task {
	uint64_t start, end; /* device counter */
	uint32_t proc; /* whose PROF directory it came from */
	uint32_t context;
	uint32_t pmu; /* row of model->run_pmus, NPS_NONE: no counters */
	uint32_t blocks; /* from the device, 0 unknown */
	uint32_t task;
	uint16_t device, stream;
	bool whole_id; /* `task` is a number of 32 bits that identifies the stream */
	bool sub_pmu; /* `pmu` is of sub-tasks */
	bool has_subs; /* sub-tasks, of any kind */
	bool sub_uncounted; /* one that runs on the cores has no counters */
	uint8_t core_subs; /* how many run on them, 255 or more */
	bool track; /* the scheduler's word, not the cores' */
	uint8_t sqe_type, core;
};

/* Is ROW, whose submission was not seen, outside of the capture: over before it, or begun after it? */
static inline bool nps_log_task__outside(const struct nps_session *rec, const struct nps_log_task *row)
{
	return row->end < rec->begin || row->start > rec->end;
}

/*
 * Determines the chips of devices that could not be queried, from their logs; not of devices without a log.
 * Before submissions are read, whose numbers and kinds depend on it. 0 or -errno.
 */
int nps_import__chips(struct nps_session *model);

/*
 * Reads the task logs (PROF_x/device_N/data) of all processes, appends struct nps_log_task rows to TASKS,
 * their counters to model->run_pmus, and notes gaps in model->logs. STREAMS_SEEN: the streams (process <<
 * 32 | device << 16 | stream) that the host submitted to; they decide how ids were mangled.
 */
int nps_import__logs(struct nps_session *model, const struct nps_map *streams_seen, struct nps_vec *tasks);

#endif
