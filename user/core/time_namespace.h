/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks of a job in a time namespace (time_namespaces(7)), where
 * CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW are shifted.
 */
#ifndef NPS_TIME_NAMESPACE_H
#define NPS_TIME_NAMESPACE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Sets *OFFSET to the ns by which PID's CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW are ahead of ours; 0 in the
 * same namespace. 0, or a negative errno if it is another namespace whose offset cannot be read.
 */
int nps_time_namespace__offset(pid_t pid, int64_t *offset);

#endif
