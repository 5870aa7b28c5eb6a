/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is sampled of the devices, and how often: the vendor's switches by the vendor's names (behaviours 8).
 */
#ifndef NPS_DEVICE_OPTIONS_H
#define NPS_DEVICE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/aic_metrics.h"

struct nps_device_opts {
	bool io; /* network cards and RoCE ports */
	bool links; /* between devices, and to the host */
	bool memory; /* HBM, DDR, LLC, QoS; memory of the device and of modules */
	bool l2_cache;
	bool usage; /* the values of npu-smi */
	char llc; /* 'r' or 'w': accesses that the last level cache's counters count */
	enum nps_aic_metric metric;
	unsigned int io_hz, links_hz, memory_hz, aic_hz, usage_hz;
	bool all; /* every device, not only those of the job */
	bool chosen; /* devices were selected explicitly: other options do not change that */
	uint64_t listed; /* bit d: device d was named; 0: none was */
};

/* Parses --sys-devices: "job", "all", or device numbers with commas. 0, or -EINVAL. */
int nps_device_options__choose(struct nps_device_opts *o, const char *text);

/* Is anything to be sampled? */
bool nps_device_options__any(const struct nps_device_opts *o);
/* ... through the driver's channels? */
bool nps_device_options__channels(const struct nps_device_opts *o);

#endif
