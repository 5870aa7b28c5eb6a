/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values of npu-smi, queried through libdcmi.so (cann-abi 4.4): each
 * call is a message to the device's firmware.
 */
#ifndef NPS_DEVICE_DCMI_H
#define NPS_DEVICE_DCMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/device_lib.h"
#include "session.h"

#define NPS_DCMI_LINE 512 /* bytes of a line of netdev_stats.data */

/* The numbers with which DCMI addresses a device. */
struct nps_dcmi_unit {
	int card, device;
};

/* Finds the device with that logical number. 0, -ENODEV, or -ENOENT without the library. */
int nps_dcmi__find(const struct nps_device_lib *lib, uint32_t device, struct nps_dcmi_unit *unit);

/*
 * Queries all values except the time. PROFILED: a profiler owns the
 * counters, so utilisation of cores would read 0.
 */
void nps_dcmi__usage(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit, bool profiled,
		     struct nps_npu_usage *usage);

/* Processes of the host that have memory on the device. Returns their number, 0: unknown or none. */
size_t nps_dcmi__processes(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit,
			   struct nps_npu_process list[NPS_DCMI_PROCESSES]);

/* Has process PID of the host memory on the device? False: that is unknown, or not known of all processes. */
bool nps_dcmi__holds(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit, pid_t pid,
		     bool *holds);

/*
 * Writes a line of netdev_stats.data (prof-raw 2.6) to LINE: RAW and 15
 * counters of the network port. 0 or DCMI's code.
 */
int nps_dcmi__netdev(const struct nps_device_lib *lib, const struct nps_dcmi_unit *unit, uint64_t raw,
		     char line[NPS_DCMI_LINE]);

#endif
