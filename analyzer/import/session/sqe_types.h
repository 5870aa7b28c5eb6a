/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_SQE_TYPES_H
#define NPS_SQE_TYPES_H

#include <stdint.h>

/* The type (enum nps_sqe_type) that chip CHIP (enum nps_cann_chip) gives number TYPE (cann-abi 2.12). */
uint8_t nps_sqe_type(uint32_t chip, uint8_t type);

#endif
