/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/rate_limit.h"

#define SECOND 1000000000ULL

void nps_rate_limit__init(struct nps_rate_limit *r, uint64_t per_second, uint64_t burst, uint64_t now)
{
	*r = (struct nps_rate_limit){
		.per_second = per_second, .burst = burst, .left = (int64_t)burst, .filled = now
	};
}

bool nps_rate_limit__refill(struct nps_rate_limit *r, uint64_t now)
{
	uint64_t elapsed = now > r->filled ? now - r->filled : 0;
	double accrued = (double)r->per_second * ((double)elapsed / SECOND);

	if (accrued >= 1) { /* less than a token is kept for the next call */
		r->filled = now;
		/* In double: after hours it may exceed 64 bits. */
		r->left = (double)r->left + accrued < (double)r->burst ? r->left + (int64_t)accrued
								       : (int64_t)r->burst;
	}
	return r->left > 0;
}

void nps_rate_limit__spend(struct nps_rate_limit *r, uint64_t tokens)
{
	r->left -= (int64_t)tokens;
}
