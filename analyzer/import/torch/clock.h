/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of FRAMEWORK/ records: a counter, or CLOCK_MONOTONIC_RAW ns, to Unix ns (prof-raw 5). */
#ifndef NPS_FW_CLOCK_H
#define NPS_FW_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct cJSON;

struct nps_fw_clock {
	bool known; /* what values are */
	bool counter; /* values are counts */
	int64_t base; /* count */
	int64_t raw; /* ns of the base; it is also where the capture began, 0: unknown */
	int64_t ns, counts; /* so many ns are so many counts */
	int64_t offset; /* of Unix time */
	bool has_offset; /* else times are not Unix times */
};

/*
 * From profiler_info (NULL: none) and from the clock files of the PROF_* directory PROFFD (-1: none), which
 * are preferred.
 */
void nps_fw_clock__init(struct nps_fw_clock *clock, const struct cJSON *info, int proffd);

/* Stores the Unix time of VALUE in *NS. False if it is no time of this capture. */
bool nps_fw_clock__ns(const struct nps_fw_clock *clock, int64_t value, uint64_t *ns);

#endif
