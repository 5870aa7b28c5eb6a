/* SPDX-License-Identifier: BSD-2-Clause */
/* The small files of a PROF_* directory: counters, memory, usage of the host, AI CPU records. */
#ifndef NPS_CANN_SIDE_H
#define NPS_CANN_SIDE_H

#include "cann/control.h"
#include "cann/dictionary.h"

/*
 * Imports them from the opened directories HOST (NULL: there is none), whose dictionary NAMES is, and DEVICES into MODEL.
 * 0 or negative errno.
 */
int nps_cann_side__import(struct nps_model *model, struct nps_dictionary *names,
			  const struct nps_cann_dir *host, const struct nps_cann_dir *devices,
			  size_t ndevices);

#endif
