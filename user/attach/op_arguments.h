/* SPDX-License-Identifier: BSD-2-Clause */
/* How many arguments of an operator's first phase are recorded. */
#ifndef NPS_OP_ARGUMENTS_H
#define NPS_OP_ARGUMENTS_H

#include <stdint.h>

/*
 * The number of arguments of operator NAME ("aclnnAdd") that are not in floating-point registers; 0: unknown.
 */
uint8_t nps_op_arguments(const char *name);

#endif
