/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NPS_OS_THREAD_H
#define NPS_OS_THREAD_H

#include "model/model.h"

/* A row of os_thread for thread GTID, of whose scheduling nothing is known. 0 or negative errno. */
int nps_os_thread__add(struct nps_model *model, uint64_t gtid, uint32_t name, size_t *row);

#endif
