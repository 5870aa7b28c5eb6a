/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_LOST_H
#define NPS_LOST_H

#include <stdint.h>

/* What an input had and the result has not. */
struct nps_lost {
	char what[120]; /* "records of stars_soc.data.0 that are no records" */
	uint64_t count;
};

#endif
