/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver's calls return, and in words what that means. */
#ifndef NPS_DEVICE_REPORT_H
#define NPS_DEVICE_REPORT_H

#include <stdbool.h>

/* What the driver's calls return (cann-abi 4.1). */
enum nps_prof_code {
	NPS_PROF_OK = 0,
	NPS_PROF_ERROR = -1,
	NPS_PROF_TIMEOUT = -2,
	NPS_PROF_STARTED = -3,
	NPS_PROF_STOPPED = -4,
	NPS_PROF_INTERRUPTED = -5,
	NPS_PROF_NOT_READABLE = -6,
	NPS_PROF_BUSY = -8,
	NPS_PROF_SMALL_BUFFER = -9,
	NPS_PROF_OCCUPIED = -10,
	NPS_PROF_VF_FULL = -11,
	NPS_PROF_NO_CONTEXT = 115,
	NPS_PROF_DATA_LOST = 0x916,
	NPS_PROF_NONSENSE = -71, /* -EPROTO: detected here */
};

/* Is a retry useless? */
bool nps_device_report__final(int code);

/* WHAT the code means, and what happens to the channel THEN. Static texts. */
void nps_device_report__words(int code, const char **what, const char **then);

#endif
