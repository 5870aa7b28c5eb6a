/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control files of a PROF_* directory (prof-raw 1.4): what was measured, on which machine, and how the
 * clocks relate. They let the vendor's parser, and our importer, read the directory unchanged. They are
 * written when data begins and again when it has ended, so that an aborted capture has them too.
 */
#ifndef NPS_PROF_CONTROL_H
#define NPS_PROF_CONTROL_H

#include <cjson/cJSON.h>

#include "driver/device_info.h"
#include "driver/prof_files.h"

/* One instant on the clocks of host and device; 0: unknown. */
struct nps_prof_sync {
	uint64_t host_raw; /* CLOCK_MONOTONIC_RAW ns */
	uint64_t device_raw; /* ns of the device's CLOCK_MONOTONIC_RAW */
	uint64_t device_count; /* ticks of its counter */
};

struct nps_prof_control {
	char name[NPS_PROF_NAME]; /* of the PROF_* directory in the session */
	pid_t pid; /* process of the data; 0: the system */
	const char *pid_name;
	int rank; /* -1: none */
	int level; /* value of prof_level */
	uint32_t platform, driver_version; /* of its devices, as in nps_device_info */
	uint32_t host_khz; /* of the counter that stamps module memory; 0 or 10^6: CLOCK_MONOTONIC_RAW */
	struct nps_clock begin, end; /* end.real 0: it has not ended */
	const cJSON *sample; /* object: keys of sample.json that describe what was measured; NULL: none */
};

/* Writes or replaces the files of PROF_x/host. -errno. */
int nps_prof_control__host(const struct nps_prof_control *c, struct nps_session_writer *s);

/* The same of PROF_x/device_N. */
int nps_prof_control__device(const struct nps_prof_control *c, struct nps_session_writer *s,
			     const struct nps_device_info *device, const struct nps_prof_sync *sync);

#endif
