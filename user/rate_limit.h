/* SPDX-License-Identifier: BSD-2-Clause */
/* Token bucket: so much a second on average, and so much at once. */
#ifndef NPS_RATE_LIMIT_H
#define NPS_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct nps_rate_limit {
	uint64_t per_second, burst; /* tokens: bytes, or ns of CPU time */
	int64_t left; /* below 0: more was spent than there was */
	uint64_t filled; /* CLOCK_MONOTONIC ns */
};

/* Full at NOW (CLOCK_MONOTONIC ns). */
void nps_rate_limit__init(struct nps_rate_limit *r, uint64_t per_second, uint64_t burst, uint64_t now);

/* Adds what has accrued since the last call. Is anything left? */
bool nps_rate_limit__refill(struct nps_rate_limit *r, uint64_t now);

/* May spend more than is left: then nothing is until that has accrued. */
void nps_rate_limit__spend(struct nps_rate_limit *r, uint64_t tokens);

#endif
