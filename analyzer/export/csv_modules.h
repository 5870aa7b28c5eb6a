/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_CSV_MODULES_H
#define NPS_CSV_MODULES_H

#include "model/model.h"

/* Name of a module of the driver as npu_module_mem has it (outputs 4.4, ENUM_MODULE); NULL: none is known. */
const char *nps_module_name(uint32_t module, enum nps_generation generation);

#endif
