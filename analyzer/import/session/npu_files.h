/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of a session's device.nps: clocks of devices, and samples of npu-smi. Untrusted. */
#ifndef NPS_NPU_FILES_H
#define NPS_NPU_FILES_H

#include "base/vec.h"
#include "clock/map.h"

#include <stdbool.h>

struct nps_npu_samples {
	bool requested; /* according to session.json devices were sampled */
	struct nps_vec clocks; /* struct nps_device_clock: reads of counters by the collector */
	struct nps_vec raws; /* the same of CLOCK_MONOTONIC_RAW */
	struct nps_vec usage; /* struct nps_npu_usage */
	struct nps_vec processes; /* struct nps_npu_process */
	uint64_t strange; /* with impossible times or devices */
};

void nps_npu_samples__init(struct nps_npu_samples *npu, int tmpfd);
void nps_npu_samples__free(struct nps_npu_samples *npu);

/*
 * Takes over a chunk of device.nps. FIRST and LAST: CLOCK_MONOTONIC ns between which times are believed. 0, a
 * negative errno, or 1: the chunk is of another file.
 */
int nps_npu_samples__add(struct nps_npu_samples *npu, const struct nps_chunk *chunk, const void *payload,
			 uint64_t first, uint64_t last);

/* Fits the reads of DEVICE in READS, whose clock has HZ. As nps_clock_map__fit(). */
int nps_npu_samples__fit(const struct nps_vec *reads, uint32_t device, uint64_t hz,
			 struct nps_clock_map *map);

#endif
