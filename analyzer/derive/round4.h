/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_ROUND4_H
#define NPS_ROUND4_H

/* VALUE rounded to 4 decimals, as Python's round() does it: ratios and GB/s of the communication tables. */
double nps_round4(double value);

#endif
