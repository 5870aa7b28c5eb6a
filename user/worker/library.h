/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's functions, as exported by its libraries (cann-abi 4.1, 4.3, 4.4). NULL: the library lacks
 * it.
 */
#ifndef NPS_WORKER_LIBRARY_H
#define NPS_WORKER_LIBRARY_H

#include "device_worker.h"

#include <stddef.h>
#include <stdint.h>

/* prof_start_para */
struct prof_start {
	int32_t type;
	uint32_t period_ms;
	uint32_t real_time;
	void *data;
	uint32_t data_size;
};

struct chip_info {
	char type[NPS_CHIP_TEXT], name[NPS_CHIP_TEXT], version[NPS_CHIP_TEXT];
};

struct driver {
	int (*get_channels)(unsigned int device, struct nps_prof_channels *channels);
	int (*start)(unsigned int device, unsigned int channel, struct prof_start *start);
	int (*stop)(unsigned int device, unsigned int channel);
	int (*read)(unsigned int device, unsigned int channel, char *buf, unsigned int size);
	int (*flush)(unsigned int device, unsigned int channel, unsigned int *len);
	int (*device_info)(uint32_t device, int32_t module, int32_t info, int64_t *value);
	int (*device_count)(uint32_t *n);
	int (*device_ids)(uint32_t *ids, uint32_t len);
	int (*api_version)(int *version);
	int (*chip_info)(unsigned int device, struct chip_info *info);

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

/*
 * Loads LIBRARY (enum nps_worker_library) from the first of PATHS, NULL-terminated, that can be loaded,
 * and sets its functions in D. 0 with TEXT = that path; -ENOENT: none can, -ELIBACC: it lacks a function,
 * or does not initialise; TEXT is the reason.
 */
int worker_library_open(uint32_t library, char **paths, struct driver *d, char *text, size_t size);

#endif
