/* SPDX-License-Identifier: BSD-2-Clause */
/* Token bucket: limits the average rate, and the burst. */
#ifndef NPS_RATE_LIMIT_H
#define NPS_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct nps_rate_limit {
	uint64_t per_second, burst; /* tokens: bytes, or ns of CPU time */
	int64_t left; /* below 0: more was spent than was there */
	uint64_t filled; /* CLOCK_MONOTONIC ns */
};

/* Starts full at NOW (CLOCK_MONOTONIC ns). */
void nps_rate_limit__init(struct nps_rate_limit *r, uint64_t per_second, uint64_t burst, uint64_t now);

/* Adds tokens accrued since the last call. Are any left? */
bool nps_rate_limit__refill(struct nps_rate_limit *r, uint64_t now);

/* May spend more than is left: then none are left until that has accrued. */
void nps_rate_limit__spend(struct nps_rate_limit *r, uint64_t tokens);

#endif
