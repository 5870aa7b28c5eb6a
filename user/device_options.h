/* SPDX-License-Identifier: BSD-2-Clause */
/* What is sampled of the devices, and how often: the vendor's switches by the vendor's names (behaviours 8). */
#ifndef NPS_DEVICE_OPTIONS_H
#define NPS_DEVICE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aic_metrics.h"

struct nps_device_opts {
	bool io; /* network cards and RoCE ports */
	bool links; /* between devices, and to the host */
	bool memory; /* HBM, DDR, LLC, QoS; memory of the device and of modules */
	bool l2_cache;
	bool usage; /* what npu-smi tells */
	char llc; /* 'r' or 'w': of which accesses the last level cache tells */
	enum nps_aic_metric metric;
	unsigned int io_hz, links_hz, memory_hz, aic_hz, usage_hz;
	bool all; /* every device, not those of the job alone */
	bool chosen; /* which devices was said: what else was asked for does not change it */
	uint64_t listed; /* bit d: device d was named; 0: none was */
};

#define NPS_DEVICE_OPTS_DEFAULT                                                                              \
	{                                                                                                    \
		.llc = 'r', .io_hz = 100, .links_hz = 50, .memory_hz = 50, .aic_hz = 100, .usage_hz = 1      \
	}

/* Keys of the options; the caller's own are below. */
enum nps_device_key {
	NPS_DEVICE_KEY = 600,
	NPS_OPT_SYS_IO = NPS_DEVICE_KEY,
	NPS_OPT_SYS_IO_HZ,
	NPS_OPT_SYS_LINKS,
	NPS_OPT_SYS_LINKS_HZ,
	NPS_OPT_SYS_MEMORY,
	NPS_OPT_SYS_MEMORY_HZ,
	NPS_OPT_LLC,
	NPS_OPT_L2_CACHE,
	NPS_OPT_AIC_METRICS,
	NPS_OPT_AIC_HZ,
	NPS_OPT_NPU_USAGE,
	NPS_OPT_NPU_USAGE_HZ,
	NPS_OPT_SYS_DEVICES,
	NPS_DEVICE_KEY_END
};

/* Their rows of argp's table. */
#define NPS_DEVICE_OPTIONS                                                                                     \
	{ "sys-io", NPS_OPT_SYS_IO, 0, 0, "Network cards and RoCE ports of the devices (default: no)", 0 },    \
		{ "sys-io-sampling-freq",                                                                      \
		  NPS_OPT_SYS_IO_HZ,                                                                           \
		  "HZ",                                                                                        \
		  0,                                                                                           \
		  "Their samples a second, 1 to 100 (default: 100)",                                           \
		  0 },                                                                                         \
		{ "sys-interconnection",                                                                       \
		  NPS_OPT_SYS_LINKS,                                                                           \
		  0,                                                                                           \
		  0,                                                                                           \
		  "Links between devices and to the host: HCCS, PCIe, between chips and dies (default: no)",   \
		  0 },                                                                                         \
		{ "sys-interconnection-freq",                                                                  \
		  NPS_OPT_SYS_LINKS_HZ,                                                                        \
		  "HZ",                                                                                        \
		  0,                                                                                           \
		  "Their samples a second, 1 to 50 (default: 50)",                                             \
		  0 },                                                                                         \
		{ "sys-hardware-mem",                                                                          \
		  NPS_OPT_SYS_MEMORY,                                                                          \
		  0,                                                                                           \
		  0,                                                                                           \
		  "Memories of the devices: HBM, DDR, last level cache, quality of service, use by the "       \
		  "device and its modules (default: no)",                                                      \
		  0 },                                                                                         \
		{ "sys-hardware-mem-freq",                                                                     \
		  NPS_OPT_SYS_MEMORY_HZ,                                                                       \
		  "HZ",                                                                                        \
		  0,                                                                                           \
		  "Their samples a second, 1 to 100 (default: 50)",                                            \
		  0 },                                                                                         \
		{ "llc-profiling",                                                                             \
		  NPS_OPT_LLC,                                                                                 \
		  "read|write",                                                                                \
		  0,                                                                                           \
		  "Which accesses of the last level cache, with --sys-hardware-mem (default: read)",           \
		  0 },                                                                                         \
		{ "l2-cache",                                                                                  \
		  NPS_OPT_L2_CACHE,                                                                            \
		  0,                                                                                           \
		  0,                                                                                           \
		  "Hits and victims of the L2 cache by task (default: no)",                                    \
		  0 },                                                                                         \
		{ "aic-metrics",                                                                               \
		  NPS_OPT_AIC_METRICS,                                                                         \
		  "NAME",                                                                                      \
		  0,                                                                                           \
		  "Counters of the AI cores, sampled: PipeUtilization, ArithmeticUtilization, Memory, "        \
		  "MemoryL0, MemoryUB, ResourceConflictRatio, L2Cache, MemoryAccess (default: None)",          \
		  0 },                                                                                         \
		{ "aic-freq", NPS_OPT_AIC_HZ, "HZ", 0, "Their samples a second, 1 to 100 (default: 100)", 0 }, \
		{ "npu-usage",                                                                                 \
		  NPS_OPT_NPU_USAGE,                                                                           \
		  0,                                                                                           \
		  0,                                                                                           \
		  "What npu-smi tells of devices: utilisation, memory, temperature, power, health, memory "    \
		  "of processes (default: no)",                                                                \
		  0 },                                                                                         \
		{ "npu-usage-freq",                                                                            \
		  NPS_OPT_NPU_USAGE_HZ,                                                                        \
		  "HZ",                                                                                        \
		  0,                                                                                           \
		  "Its samples a second, 1 to 10 (default: 1)",                                                \
		  0 },                                                                                         \
	{                                                                                                      \
		"sys-devices", NPS_OPT_SYS_DEVICES, "job|all|N[,N]...", 0,                                     \
			"Devices that are sampled (default: job, those that it uses; with -a: all)", 0         \
	}

/* Takes option KEY with ARG. 0, -EINVAL for a value that is none, -ENOENT if KEY is not of these. */
int nps_device_options__take(struct nps_device_opts *o, int key, const char *arg);

/* Is anything to be sampled? */
bool nps_device_options__any(const struct nps_device_opts *o);
/* ... through the driver's channels? */
bool nps_device_options__channels(const struct nps_device_opts *o);

#endif
