/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of the driver's library that libdcmi calls. */
#ifndef NPUSIM_HAL_DSMI_H
#define NPUSIM_HAL_DSMI_H

#include <stdint.h>

#define DSMI_PROCESSES 32

struct dsmi_process {
	int32_t pid;
	uint64_t bytes;
};

struct dsmi_state {
	char chip_name[32], soc[32];
	uint32_t aicores, vector_cores, aicpus, core_mhz;
	uint64_t hbm_total, hbm_used;
	uint32_t load; /* of the cores, permille */
	uint32_t power; /* 0.1 W */
	int profiled; /* the PMU is in use */
	int fresh; /* the device was reset a moment ago */
	int has_hccs;
	uint64_t hbm_bytes, hccs_tx, hccs_rx, roce_tx, roce_rx, pcie_tx, pcie_rx; /* totals */
	int nprocesses;
	struct dsmi_process process[DSMI_PROCESSES];
};

#pragma GCC visibility push(default)

uint32_t dsmi_device_count(void);
/* 0, or what the control file orders, or -1 if there is no such device. */
int dsmi_read(uint32_t device, struct dsmi_state *state);

#pragma GCC visibility pop

#endif
