/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_SYSCALL_NAMES_H
#define NPS_SYSCALL_NAMES_H

#include <stdint.h>

/* Name of system call NR of the session's architecture, NULL if it has none. */
const char *nps_syscall_name(const char *arch, uint32_t nr);

#endif
