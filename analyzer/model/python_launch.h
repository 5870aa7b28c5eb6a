/* SPDX-License-Identifier: BSD-2-Clause */
/* The Python stacks of calls. */
#ifndef NPS_PYTHON_LAUNCH_H
#define NPS_PYTHON_LAUNCH_H

#include "model/model.h"

/* The row of m->py_launch of the call with that connection; NPS_NONE: it has none. */
uint32_t nps_python_launch__find(const struct nps_model *m, uint32_t connection);

#endif
