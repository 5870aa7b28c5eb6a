/* SPDX-License-Identifier: BSD-2-Clause */
#include "derive/round4.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double nps_round4(double value)
{
	double scaled = value * 1e4, whole = nearbyint(scaled);
	char text[400];

	/* Away from a tie, and where every integer is a double, the quotient is the nearest double. */
	if (fabs(scaled) < 1e12 && fabs(fabs(scaled - whole) - 0.5) > 1e-3)
		return whole / 1e4;
	snprintf(text, sizeof(text), "%.4f", value);
	return strtod(text, NULL);
}
