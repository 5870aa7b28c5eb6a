/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of capabilities, with those that headers of older kernels lack. */
#ifndef NPS_LINUX_CAPABILITIES_H
#define NPS_LINUX_CAPABILITIES_H

#include <linux/capability.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#endif
