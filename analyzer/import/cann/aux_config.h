/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of the sampled counters, from sample.json and info.json. */
#ifndef NPS_AUX_CONFIG_H
#define NPS_AUX_CONFIG_H

#include "import/cann/control.h"

#define NPS_AUX_EVENTS 8 /* of a task, in a record of the L2 cache or of address translation */
#define NPS_AUX_QOS 10 /* values of a record */
#define NPS_AUX_CARDS 64
#define NPS_AUX_CPUS 256

/* Which of a record's events add up to a rate: event i counts `sign[i]` times. */
struct nps_aux_rates {
	bool known;
	int8_t request[NPS_AUX_EVENTS], first[NPS_AUX_EVENTS], second[NPS_AUX_EVENTS];
};

struct nps_aux_config {
	uint32_t qos[NPS_AUX_QOS]; /* texts */
	size_t nqos;
	char llc; /* 'r', 'w'; 0: neither */
	uint64_t disk_hz; /* times 10^6 */
	struct nps_aux_rates l2, tlb;

	struct nps_aux_card {
		char name[64];
		uint64_t speed; /* B/s */
	} cards[NPS_AUX_CARDS];
	size_t ncards;
	uint8_t cpus[NPS_AUX_CPUS]; /* of the device: 'c' control, 'a' AI */
};

/* Reads the files of DIR; texts go to MODEL. 0 or -ENOMEM. */
int nps_aux_config__read(struct nps_aux_config *config, struct nps_model *model,
			 const struct nps_cann_dir *dir);

#endif
