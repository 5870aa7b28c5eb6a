/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_DEVICE_COUNTERS_H
#define NPS_DEVICE_COUNTERS_H

#include "import/session/session_model.h"

/*
 * Sets in DIR, of which nothing else is set, what session.json has of a device's cores and of the events
 * that its PMU counted.
 */
void nps_device_counters(const struct nps_device *device, struct nps_cann_dir *dir);

#endif
