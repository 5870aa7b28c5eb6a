/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/common/group_hash.h"

uint64_t nps_group_hash(const char *name)
{
	uint32_t h29 = 0, h131 = 0;

	for (; *name; name++) {
		h29 = h29 * 29 + (unsigned char)*name;
		h131 = h131 * 131 + (unsigned char)*name;
	}
	return (uint64_t)h29 << 32 | h131;
}
