/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the cores, as they follow from the work. */
#ifndef NPUSIM_HAL_PMU_H
#define NPUSIM_HAL_PMU_H

#include <stdint.h>

enum pmu_core { PMU_AIC, PMU_AIV };

struct device;
struct task;

/* Of all cores of the sort that the kernel ran on; 0 if it ran on none. */
uint64_t pmu_cycles(const struct device *d, const struct task *t, enum pmu_core core);
/* An event's count where `cycles` were spent; `work` names the kernel, 0 for a mixture. */
uint64_t pmu_event(uint32_t event, uint32_t work, uint64_t cycles);

#endif
