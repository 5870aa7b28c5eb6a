/* SPDX-License-Identifier: BSD-2-Clause */
/* From files to the model's tables. All input is untrusted. */
#ifndef NPS_IMPORT_H
#define NPS_IMPORT_H

#include "session/recording.h"

/*
 * Reads session.json and the chunk files into MODEL. A cut or damaged file is read up to
 * the cut, said on stderr and noted in model->losses.cut. Negative errno if nothing can be
 * made of the directory; the reason has been printed.
 */
int nps_import__session(struct nps_recording *model, const char *path);

/* One finished (or, with end = 0, unfinished) task of a device's log. */
struct nps_log_task {
	uint64_t start, end; /* device counter */
	uint32_t proc; /* whose PROF directory it came from */
	uint32_t context;
	uint16_t device, stream, task;
	uint8_t sqe_type, core;
};

/*
 * Reads the task logs (PROF_x/device_N/data/stars_soc.data.N.slice_K) of all processes, appends
 * struct nps_log_task rows to TASKS and notes gaps in model->losses. STREAMS_SEEN tells which
 * (process << 32 | device << 16 | stream) the host submitted to: it decides how ids were mangled.
 */
int nps_import__stars(struct nps_recording *model, const struct nps_map *streams_seen, struct nps_vec *tasks);

#endif
