/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/nearest.h"

#include "base/util.h"

#include <string.h>

/* Three rows of the matrix: a swap looks back two. */
unsigned int nps_edit_distance(const char *a, const char *b)
{
	unsigned int rows[3][NPS_NEAREST_NAME + 1];
	size_t na = strnlen(a, NPS_NEAREST_NAME + 1), nb = strnlen(b, NPS_NEAREST_NAME + 1);

	if (na > NPS_NEAREST_NAME || nb > NPS_NEAREST_NAME)
		return UINT_MAX;
	for (size_t k = 0; k <= nb; k++)
		rows[0][k] = (unsigned int)k;
	for (size_t i = 1; i <= na; i++) {
		unsigned int *row = rows[i % 3];
		const unsigned int *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];

		row[0] = (unsigned int)i;
		for (size_t k = 1; k <= nb; k++) {
			unsigned int best = above[k - 1] + (a[i - 1] != b[k - 1]);

			best = NPS_MIN(best, NPS_MIN(above[k], row[k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				best = NPS_MIN(best, above2[k - 2] + 1);
			row[k] = best;
		}
	}
	return rows[na % 3][nb];
}

bool nps_is_near(const char *word, const char *name, unsigned int *distance)
{
	*distance = nps_edit_distance(word, name);
	return *distance <= NPS_MAX((strnlen(name, NPS_NEAREST_NAME) + 2) / 4, (size_t)1);
}
