/* SPDX-License-Identifier: BSD-2-Clause */
/* What npu-smi asks, asked through libdcmi.so (cann-abi 4.4): each call is a message to the device's firmware. */
#ifndef NPS_DEVICE_DCMI_H
#define NPS_DEVICE_DCMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device_lib.h"
#include "session.h"

#define NPS_DCMI_LINE 512 /* bytes of a line of netdev_stats.data */

/* Where a device is for DCMI. */
struct nps_dcmi_place {
	int card, device;
};

/* Finds the device of that logical number. 0, -ENODEV, or -ENOENT without the library. */
int nps_dcmi__find(const struct nps_device_lib *lib, uint32_t device, struct nps_dcmi_place *place);

/* Asks all there is; PROFILED: a profiler owns the counters, and utilisation of cores reads 0. The time is the caller's. */
void nps_dcmi__usage(const struct nps_device_lib *lib, const struct nps_dcmi_place *place, bool profiled,
		     struct nps_npu_usage *usage);

/* Processes of the host that hold memory of the device. Returns how many, 0 if that cannot be had. */
size_t nps_dcmi__processes(const struct nps_device_lib *lib, const struct nps_dcmi_place *place,
			   struct nps_npu_process list[NPS_DCMI_PROCESSES]);

/* Does process PID of the host hold memory of the device? False: that cannot be had, or not of all processes. */
bool nps_dcmi__holds(const struct nps_device_lib *lib, const struct nps_dcmi_place *place, pid_t pid,
		     bool *holds);

/* A line of netdev_stats.data (prof-raw 2.6) into LINE: RAW and 15 counters of the network port. 0 or what DCMI returned. */
int nps_dcmi__netdev(const struct nps_device_lib *lib, const struct nps_dcmi_place *place, uint64_t raw,
		     char line[NPS_DCMI_LINE]);

#endif
