/* SPDX-License-Identifier: BSD-2-Clause */
/* How many arguments of an operator's first phase are told. */
#ifndef NPS_OP_ARGUMENTS_H
#define NPS_OP_ARGUMENTS_H

#include <stdint.h>

/* All of operator NAME ("aclnnAdd") that do not stand in floating-point registers; 0 where nothing is known of its arguments. */
uint8_t nps_op_arguments(const char *name);

#endif
