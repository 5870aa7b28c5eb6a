/* SPDX-License-Identifier: BSD-2-Clause */
/* What work moves over memories and links, and what it costs cores. */
#ifndef NPUSIM_HAL_LINKS_H
#define NPUSIM_HAL_LINKS_H

#include <stdint.h>

/* Totals since the board was powered up, each process' share in its slot of the board. */
enum counter {
	HBM_READ, /* bytes */
	HBM_WRITE,
	DDR_READ,
	DDR_WRITE,
	HCCS_TX,
	HCCS_RX,
	ROCE_TX,
	ROCE_RX,
	UB_TX,
	UB_RX,
	PCIE_TX, /* to the host */
	PCIE_RX,
	AIC_CYCLES, /* busy, of all cores */
	AIV_CYCLES,
	COUNTERS
};

struct device;
struct task;
struct board;

/* With the device locked: the task has got as far as `until` (raw). */
void links_progress(struct device *d, struct task *t, uint64_t until);
/* A copy that the host did, finished now. */
void links_copied(struct device *d, int to_device, uint64_t bytes);
/* The sum over all processes. */
uint64_t links_total(const struct board *b, enum counter counter);
/* Two fields of the truth file: link and direction. */
const char *links_name(enum counter counter);
/* Writes what was not yet written to the truth file. */
void links_truth(void);

#endif
