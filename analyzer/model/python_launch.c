/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/python_launch.h"

uint32_t nps_python_launch__find(const struct nps_model *m, uint32_t connection)
{
	const struct nps_py_launch_table *t = &m->py_launch;
	size_t low = 0, high = t->t.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->connection[middle] < connection)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->t.len && t->connection[low] == connection ? (uint32_t)low : NPS_NONE;
}
