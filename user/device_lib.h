/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's libraries, opened at run time (cann-abi 1.3, 4): libascend_hal.so, through which channels are read, and
 * libdcmi.so, which npu-smi asks. The host's own are preferred; a job in a container may bring others, and those are taken
 * when the host has none.
 */
#ifndef NPS_DEVICE_LIB_H
#define NPS_DEVICE_LIB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "clocks.h"

#define NPS_PROF_CHANNELS 160
#define NPS_DEVICE_MAX 64

struct nps_prof_channel {
	char name[32];
	uint32_t type, id;
};

struct nps_prof_channels {
	uint32_t chip, n;
	struct nps_prof_channel v[NPS_PROF_CHANNELS];
};

struct nps_prof_start {
	int32_t type; /* enum nps_prof_type */
	uint32_t period_ms;
	uint32_t real_time;
	void *data;
	uint32_t data_size;
};

enum nps_prof_type { NPS_PROF_TS = 0, NPS_PROF_PERIPHERAL = 1 };

struct nps_dcmi_hbm {
	uint64_t size_mb;
	uint32_t mhz, pad;
	uint64_t usage_mb;
	int32_t temperature;
	uint32_t bandwidth_percent;
};

struct nps_dcmi_process {
	int32_t pid;
	uint64_t bytes;
};

struct nps_dcmi_packets {
	uint64_t counters[48];
	int64_t seconds, microseconds;
	uint8_t reserved[64];
};

struct nps_device_lib {
	void *hal, *dcmi; /* NULL: not there */
	char hal_path[256], dcmi_path[256];
	atomic_uint_fast64_t
		*sign; /* CLOCK_MONOTONIC ns: when the last call began; NULL: nobody watches them */

	int (*get_channels)(unsigned int device, struct nps_prof_channels *channels);
	int (*start)(unsigned int device, unsigned int channel, struct nps_prof_start *start);
	int (*stop)(unsigned int device, unsigned int channel);
	int (*read)(unsigned int device, unsigned int channel, char *buf, unsigned int size);
	int (*flush)(unsigned int device, unsigned int channel, unsigned int *len); /* NULL: older drivers */
	int (*device_info)(uint32_t device, int32_t module, int32_t info, int64_t *value);
	int (*device_count)(uint32_t *n);
	int (*device_ids)(uint32_t *ids, uint32_t len);
	int (*api_version)(int *version);
	int (*chip_info)(unsigned int device, void *type_name_version);
	int (*soc_version)(uint32_t device, char *version, uint32_t len);

	int (*dcmi_init)(void);
	int (*card_list)(int *n, int *cards, int len);
	int (*devices_in_card)(int card, int *n);
	int (*logic_id)(int *logic, int card, int device);
	int (*utilization)(int card, int device, int type, unsigned int *percent);
	int (*hbm)(int card, int device, struct nps_dcmi_hbm *hbm);
	int (*temperature)(int card, int device, int *celsius);
	int (*power)(int card, int device, int *deciwatt);
	int (*health)(int card, int device, unsigned int *health);
	int (*processes)(int card, int device, struct nps_dcmi_process *list, int *n);
	int (*packets)(int card, int device, int port, struct nps_dcmi_packets *packets);
};

/* Before each call of a function above: it is one call that hangs, not many that are slow together. */
static inline void nps_device_lib__alive(const struct nps_device_lib *lib)
{
	if (lib->sign)
		atomic_store(lib->sign, nps_now(CLOCK_MONOTONIC));
}

/*
 * Opens libascend_hal.so; PIDS are processes of the job, whose mappings are looked at for what the host's search path does
 * not have: files that only root can write. 0; -ENOENT without the library, -ELIBACC if it cannot be loaded or lacks a
 * function: `why` says so in words.
 */
int nps_device_lib__open(struct nps_device_lib *lib, const pid_t *pids, size_t n, char *why, size_t why_size);

/* The same of libdcmi.so, without which lib->dcmi stays NULL; -ELIBACC has been said. */
int nps_device_lib__open_dcmi(struct nps_device_lib *lib, const pid_t *pids, size_t n);

/* Never unloads: threads of the driver run in its code. */
void nps_device_lib__close(struct nps_device_lib *lib);

#endif
