/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls are for, by their names. */
#ifndef NPS_CALL_CLASS_H
#define NPS_CALL_CLASS_H

#include <stdbool.h>

enum nps_os_call_class { NPS_OS_OTHER = 1, NPS_OS_IO, NPS_OS_LOCK };

/* What a system call is for, by its name. */
enum nps_os_call_class nps_os_call_class(const char *name);

/* Whether a CANN call returns only when the device has done something. */
bool nps_is_device_wait(const char *name);

#endif
