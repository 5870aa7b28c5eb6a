/* SPDX-License-Identifier: BSD-2-Clause */
/* The small files of a PROF_* directory: counters, memory, usage of the host, AI CPU records. */
#ifndef NPS_CANN_AUX_H
#define NPS_CANN_AUX_H

#include "import/cann/control.h"
#include "import/cann/dictionary.h"

/* Sampling of one file began then: more exact than that of all files of the device. */
struct nps_aux_start {
	const char *file; /* without the device; NULL ends a list */
	uint32_t device;
	uint64_t raw; /* CLOCK_MONOTONIC_RAW ns of the host */
};

/* What sampled cores counted, over all directories that a session has of their devices. May be zeros. */
struct nps_aux_cores {
	struct nps_core_sums *first;
};

/* What a session of our own knows beyond the control files. */
struct nps_aux_session {
	const struct nps_aux_start *starts;
	uint64_t from, to; /* Unix ns: what was sampled in between makes sums */
	struct nps_aux_cores *cores; /* gets them, for nps_aux_cores__write() */
};

/*
 * Imports these files from the opened directories HOST (NULL: there is none), whose dictionary
 * NAMES is, and DEVICES into MODEL. SESSION may be NULL. 0 or negative errno.
 */
int nps_cann_aux__import(struct nps_model *model, struct nps_dictionary *names,
			 const struct nps_cann_dir *host, const struct nps_cann_dir *devices, size_t ndevices,
			 const struct nps_aux_session *session);

/* Rows of sample_summary for what CORES has. 0 or negative errno. */
int nps_aux_cores__write(const struct nps_aux_cores *cores, struct nps_model *model);
void nps_aux_cores__free(struct nps_aux_cores *cores);

/* Imports the kernels that the AI CPUs of directory DIR report. Its clocks are set. 0 or negative errno. */
int nps_cann_aux__aicpu(struct nps_model *model, const struct nps_cann_dir *dir);

/* Leaves out what was sampled of devices before FROM and after TO, Unix ns. 0 or negative errno. */
int nps_cann_aux__clip(struct nps_model *model, uint64_t from, uint64_t to);

#endif
