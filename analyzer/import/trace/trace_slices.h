/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace in slices: msprof_slice_{N}_{time}.json, of which the first alone names the processes of all. */
#ifndef NPS_TRACE_SLICES_H
#define NPS_TRACE_SLICES_H

#include "base/vec.h"

#include <limits.h>
#include <stdbool.h>

struct nps_trace_slice {
	unsigned int number;
	char path[PATH_MAX];
};

/* True if the file NAME is one. */
bool nps_trace_slices__is_one(const char *name);

/* True if A and B, which may be the same, are slices of one trace. */
bool nps_trace_slices__same(const char *a, const char *b);

/* Fills SLICES (struct nps_trace_slice) with those of PATH's trace, by number; PATH alone if it has none. */
int nps_trace_slices__find(struct nps_vec *slices, const char *path);

#endif
