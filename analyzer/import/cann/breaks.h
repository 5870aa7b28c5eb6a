/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Offsets at which a channel has a gap. Our collector notes them in `npuscope.breaks` beside the data, a
 * line each, `STREAM OFFSET LOST SOURCE`: the stream (as `stars_soc.data.0`), the offset of its byte at
 * which new data begins, the bytes that were lost before it, and who read from there on
 * (docs/session-format.md). Running numbers of records begin anew at each.
 */
#ifndef NPS_CANN_BREAKS_H
#define NPS_CANN_BREAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nps_breaks {
	uint64_t *offsets; /* ascending */
	size_t n, at;
	uint64_t lost; /* bytes, all together */
};

/* Reads those of stream BASE in directory DIRFD; none if there is no such file. 0 or -ENOMEM. */
int nps_breaks__read(struct nps_breaks *breaks, int dirfd, const char *base);
void nps_breaks__free(struct nps_breaks *breaks);

/* Is there a gap between the offset of the call before and OFFSET? Offsets ascend. */
static inline bool nps_breaks__passed(struct nps_breaks *breaks, uint64_t offset)
{
	bool passed = false;

	for (; breaks->at < breaks->n && breaks->offsets[breaks->at] <= offset; breaks->at++)
		passed = true;
	return passed;
}

#endif
