/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_DEVICE_COUNTERS_H
#define NPS_DEVICE_COUNTERS_H

#include "session/recording.h"

/*
 * What session.json tells of a device's cores and of the events that its PMU counted, in DIR, which is set up with nothing
 * else.
 */
void nps_device_counters(const struct nps_device *device, struct nps_cann_dir *dir);

#endif
