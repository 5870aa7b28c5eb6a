/* SPDX-License-Identifier: BSD-2-Clause */
/* The error of a clock map, as rows of the model. */
#ifndef NPS_CLOCK_ERRORS_H
#define NPS_CLOCK_ERRORS_H

#include "clock/map.h"
#include "model/model.h"

/*
 * Rows of MODEL's table `clock` for DEVICE from BEGIN to END, Unix ns: one a second or so, each with the
 * greatest error of MAP in it. The source is `assumed` if the map was made of one read. 0 or a negative
 * errno.
 */
int nps_clock_errors(struct nps_model *model, const struct nps_clock_map *map,
		     const struct nps_clock_host *host, uint32_t device, uint64_t begin, uint64_t end);

/* The error at Unix time TIME on DEVICE, ns, by the rows of MODEL; -1 if it is unknown. */
int64_t nps_clock_error_at(const struct nps_model *model, uint32_t device, uint64_t time);

#endif
