/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver/device_report.h"

#include <stddef.h>

static const struct words {
	int code;
	const char *what, *then; /* reason; what happens to the channel, and advice */
} all_words[] = {
	{ NPS_PROF_TIMEOUT, "the device did not answer in time",
	  "it is tried again: check its health with npu-smi info" },
	{ NPS_PROF_STARTED, "it was started already", "it is left alone, and tried again later" },
	{ NPS_PROF_STOPPED, "it was stopped by somebody else, or the device was reset",
	  "it is started again" },
	{ NPS_PROF_INTERRUPTED, "the driver was interrupted", "it is tried again" },
	{ NPS_PROF_NOT_READABLE, "it cannot be read now", "it is tried again" },
	{ NPS_PROF_BUSY, "it is busy", "it is left alone, and tried again later" },
	{ NPS_PROF_SMALL_BUFFER, "the driver wants a larger buffer", "it is tried again" },
	{ NPS_PROF_OCCUPIED, "another profiler uses it", "it is left alone until it is free" },
	{ NPS_PROF_VF_FULL, "other users of the device's parts use it", "it is left alone until it is free" },
	{ NPS_PROF_NO_CONTEXT, "the driver gives it to the job's own processes alone", "it is not sampled" },
	{ NPS_PROF_NONSENSE, "the driver returned an impossible value", "it is tried again" },
	{ NPS_PROF_DATA_LOST, "the device lost data", "what it delivered is kept" },
};

bool nps_device_report__final(int code)
{
	return code == NPS_PROF_NO_CONTEXT;
}

void nps_device_report__words(int code, const char **what, const char **then)
{
	*what = "the driver refused it";
	*then = "it is tried again later";
	for (size_t i = 0; i < sizeof(all_words) / sizeof(*all_words); i++)
		if (all_words[i].code == code) {
			*what = all_words[i].what;
			*then = all_words[i].then;
		}
}
