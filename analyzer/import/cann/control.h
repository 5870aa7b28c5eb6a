/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control files of a host or device_N directory: what was measured, on which machine, and how its clocks
 * relate (prof-raw 1.4, 3). All of it may be missing or wrong.
 */
#ifndef NPS_CANN_CONTROL_H
#define NPS_CANN_CONTROL_H

#include "import/cann/clock.h"
#include "import/cann/slices.h"
#include "model/model.h"

#define NPS_CANN_EVENTS 10 /* PMU values of a record: 8, on the last generation 10 */
#define NPS_CANN_HOST 64 /* device number that means the host */

enum nps_cann_chip {
	NPS_CHIP_310 = 0,
	NPS_CHIP_910A = 1,
	NPS_CHIP_310P = 4,
	NPS_CHIP_910B = 5,
	NPS_CHIP_310B = 7,
	NPS_CHIP_V1_1_2 = 8,
	NPS_CHIP_NANO = 9,
	NPS_CHIP_V1_1_3 = 11,
	NPS_CHIP_950 = 15,
	NPS_CHIP_950_1 = 16
};

struct cJSON;

/* Which counters a record of an AI core's PMU has, and the events that they count. */
struct nps_cann_metrics {
	char name[32]; /* "PipeUtilization" */
	uint32_t events[NPS_CANN_EVENTS];
	unsigned int nevents;
};

struct nps_cann_dir {
	int fd, datafd;
	uint32_t device; /* NPS_CANN_HOST: the host directory */
	struct nps_slices files; /* of data/ */

	uint32_t chip;
	bool second_version; /* info.json "2.0": other structs for memory counters */
	uint32_t pid;
	char process[256], host_name[256], host_uid[64];
	int64_t rank; /* -1: none */
	uint64_t driver; /* 0 unknown */
	unsigned int cann_major, cann_minor; /* 0, 0 unknown */
	uint64_t host_hz; /* 0: host times are raw ns */
	uint64_t device_hz; /* 0: unknown */
	double aic_mhz, aiv_mhz;
	uint32_t aic_cores, aiv_cores;
	uint64_t memory_kb, cpus, user_hz;

	int level; /* -1: unknown */
	bool sampled_pmu; /* the PMU's records are samples, not of tasks */
	struct nps_cann_metrics aic, aiv;

	bool has_begin, has_end;
	uint64_t begin_us, begin_raw, end_us; /* of the session */
	bool has_host_start, has_device_start;
	uint64_t start_raw, start_count; /* host_start.log: host raw ns and counter */
	uint64_t device_raw, device_count; /* dev_start.log */

	/* Filled while the task logs are read. */
	struct nps_cann_log {
		uint64_t records;
		uint64_t gaps; /* in their running numbers: each is some records, modulo 16 */
		uint64_t task_records, task_gaps; /* those of logs of tasks alone */
		uint64_t lost_bytes; /* that a collector of ours did not get */
	} log;

	struct nps_cann_clock host_clock; /* of host counters */
	struct nps_cann_clock device_clock; /* of the device's counter */
	struct nps_cann_clock device_raw_clock; /* of the device's CLOCK_MONOTONIC_RAW */
	struct nps_cann_clock host_raw_clock; /* of the host's CLOCK_MONOTONIC_RAW */
};

/* Reads the control files of directory NAME in PARENTFD. 0, or negative errno if it cannot be opened. */
int nps_cann_dir__open(struct nps_cann_dir *dir, struct nps_model *model, int parentfd, const char *name,
		       uint32_t device);
void nps_cann_dir__close(struct nps_cann_dir *dir);

/* Sets the clocks; what DIR lacks comes from OTHER (NULL: nothing). */
void nps_cann_dir__clocks(struct nps_cann_dir *dir, const struct nps_cann_dir *other);

/* The text of a file, at most MOST bytes, ended with NUL; NULL if there is none. Freed by the caller. */
char *nps_cann_read_file(int dirfd, const char *name, size_t most);

/* The JSON of file NAME, in a device's directory of NAME.N if NUMBERED, or NULL. Free with cJSON_Delete(). */
struct cJSON *nps_cann_dir__json(const struct nps_cann_dir *dir, const char *name, bool numbered);

/* A text of an object, "" if there is none. */
const char *nps_cann_text(const struct cJSON *json, const char *key);

/* `0xf6,0xfb,...` up to a semicolon: the first MOST of them. Returns how many. */
size_t nps_cann_events(const char *text, uint32_t *events, size_t most);

/* Is it the number of a chip whose format is known? */
bool nps_chip_known(uint64_t number);

static inline bool nps_cann_dir__v6(const struct nps_cann_dir *dir)
{
	return dir->chip == NPS_CHIP_950 || dir->chip == NPS_CHIP_950_1;
}

#endif
