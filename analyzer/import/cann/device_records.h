/* SPDX-License-Identifier: BSD-2-Clause */
/* The task logs and counters of all devices, in order of time. */
#ifndef NPS_CANN_DEVICE_RECORDS_H
#define NPS_CANN_DEVICE_RECORDS_H

#include "import/cann/log_records.h"

/*
 * In the order in which they count at the same time: a task is of the batch that a flip of the same time
 * begins (prof-raw 4.3), a counter belongs to the task that ends then, and a task that takes no time begins
 * before it ends.
 */
enum nps_device_kind { NPS_DEVICE_FLIP, NPS_DEVICE_PMU, NPS_DEVICE_BLOCKS, NPS_DEVICE_START, NPS_DEVICE_END };

struct nps_device_event {
	struct nps_sort_key key; /* high: Unix ns; low: kind in the upper 8 bits, order in the file */
	uint32_t stream, task, context;
	uint32_t row; /* of counters; of a flip its number; of blocks their count */
	uint16_t device;
	uint16_t thread; /* of a context */
	uint8_t source; /* enum nps_run_source */
	uint8_t type;
};

struct nps_device_records {
	struct nps_ext_sort events;
	struct nps_vec counters;
};

/* Reads the files of all devices; marks and steps go to CAPTURE. 0 or negative errno. */
int nps_device_records__read(struct nps_device_records *records, struct nps_cann_capture *capture);
void nps_device_records__free(struct nps_device_records *records);

#endif
