/* SPDX-License-Identifier: BSD-2-Clause */
/* What tables and timeline say about network ports, alike. */
#ifndef NPS_PORT_RATES_H
#define NPS_PORT_RATES_H

#include <math.h>

/*
 * How much of a port's bandwidth bytes at BYTE_RATE take up, as the vendor counts it (outputs 3.4): bits over what is
 * B/s by its name, without a factor of 100. NaN: the bandwidth is not known.
 */
static inline double nps_port_efficiency(double byte_rate, double bandwidth)
{
	return bandwidth > 0 ? 8 * byte_rate / bandwidth : NAN;
}

#endif
