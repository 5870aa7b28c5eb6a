/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what devices log: task types of queue entries and of sub-tasks (prof-raw 2.5), and chips. */
#ifndef NPS_CANN_HARDWARE_H
#define NPS_CANN_HARDWARE_H

#include "import/cann/capture.h"

/* `Task Type` of a run, NULL if there is no such type. */
const char *nps_hardware_type(const struct nps_cann_run *run, bool v6);

/* NPU_INFO's name of a chip. */
const char *nps_chip_name(uint32_t chip);

#endif
