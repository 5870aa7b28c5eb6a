/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver reports of a device (cann-abi 4.3). Unknown values are 0. */
#ifndef NPS_DEVICE_INFO_H
#define NPS_DEVICE_INFO_H

#include <stdbool.h>
#include <stdint.h>

struct nps_device_lib;

/* platform_version of info.json (prof-raw, marks). */
enum nps_platform {
	NPS_PLATFORM_310 = 0,
	NPS_PLATFORM_910A = 1,
	NPS_PLATFORM_310P = 4,
	NPS_PLATFORM_910B = 5,
	NPS_PLATFORM_310B = 7,
	NPS_PLATFORM_950 = 15,
	NPS_PLATFORM_950_1 = 16,
	NPS_PLATFORM_UNKNOWN = 255,
};

/* Chips whose logs and counters are alike. */
enum nps_chip_generation {
	NPS_GENERATION_UNKNOWN, /* a number that no documentation describes */
	NPS_GENERATION_HWTS, /* 310, 910A, 310P */
	NPS_GENERATION_MINI, /* 310B: Stars logs the tasks, cores are of one kind */
	NPS_GENERATION_SPLIT, /* 910B, 910C: cube and vector cores */
	NPS_GENERATION_V6, /* 950 */
};

/* Generation of a number of enum nps_platform, or of any other number. */
enum nps_chip_generation nps_generation_of(uint32_t platform);

struct nps_device_info {
	uint32_t id;
	uint32_t platform; /* enum nps_platform, or the driver's number of another chip */
	uint32_t counter_khz; /* of the device's counter */
	uint32_t host_khz; /* of the host's counter, which stamps module memory; 10^6: CLOCK_MONOTONIC_RAW */
	uint32_t aic_mhz, aiv_mhz;
	uint32_t aic_cores, aiv_cores, ai_cpus, ctrl_cpus, ts_cpus;
	uint64_t ai_cpu_mask; /* CPUs of the device that are AI CPUs */
	uint32_t driver_version;
	char chip[32];
	/* It writes memory counters' records of the second version: learned from the data, prof-raw 2.6. */
	bool second_version;
};

/* Queries the driver. 0, or -ENODEV: it does not know the device. */
int nps_device_info__read(const struct nps_device_lib *lib, uint32_t id, struct nps_device_info *info);

/* Warns the user, once per device, if its chip is of no known generation. */
void nps_device_info__complain(const struct nps_device_info *info);

/* Adds id, freq_khz, chip, platform, cores and their MHz to an entry of the session's devices. */
struct cJSON;
void nps_device_info__describe(const struct nps_device_info *info, struct cJSON *device);

/* The entry of that device in the session's DEVICES; if there is none, creates it from INFO. */
struct cJSON *nps_device_info__entry(const struct nps_device_info *info, struct cJSON *devices);

/* Platform of a chip by its name in the driver (910B3, 310P1, ...); NPS_PLATFORM_UNKNOWN: none. */
uint32_t nps_platform_of(const char *chip);

#endif
