/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_CLOCKS_H
#define NPS_CLOCKS_H

#include <linux/types.h>
#include <stdint.h>
#include <time.h>

#include "session.h"

/* Now on the given clock, in ns. */
uint64_t nps_now(clockid_t clock);

/* Reads the four host clocks; uses the shortest of several tries. */
void nps_clock__sample(struct nps_clock *c);

#endif
