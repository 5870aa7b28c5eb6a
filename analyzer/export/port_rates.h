/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates of network ports, as tables and traces have them. */
#ifndef NPS_PORT_RATES_H
#define NPS_PORT_RATES_H

#include "schema/table.h"

/*
 * How much of a port's bandwidth bytes at BYTE_RATE take up, as the vendor counts it (outputs 3.4): bits
 * over what is B/s by its name, without a factor of 100. NaN: the bandwidth is not known.
 */
static inline double nps_port_efficiency(double byte_rate, double bandwidth)
{
	return bandwidth > 0 ? 8 * byte_rate / bandwidth : NAN;
}

/* PART in percent of ALL; 0 if ALL is 0 or unknown. */
static inline double nps_port_share(int64_t part, int64_t all)
{
	return part == NPS_NULL || all == NPS_NULL || all <= 0 ? 0 : 100.0 * part / all;
}

#endif
