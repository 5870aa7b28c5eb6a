/* SPDX-License-Identifier: BSD-2-Clause */
/* Device time by connection id: what ran because of one call. */
#ifndef NPS_CSV_DEVICE_TIME_H
#define NPS_CSV_DEVICE_TIME_H

#include "base/index.h"
#include "model/model.h"

struct nps_device_time {
	uint64_t all, aicore; /* ns */
};

struct nps_device_times {
	struct nps_index rows; /* connection -> row of times */
	struct nps_vec times; /* struct nps_device_time */
};

/* Sums up tasks and collectives. 0 or negative errno. */
int nps_device_times__init(struct nps_device_times *times, const struct nps_model *model);
void nps_device_times__cool(const struct nps_device_times *times);
void nps_device_times__free(struct nps_device_times *times);

/* The device time of CONNECTION; zeros if nothing ran because of it. */
struct nps_device_time nps_device_times__get(const struct nps_device_times *times, uint32_t connection);

#endif
