/* SPDX-License-Identifier: BSD-2-Clause */
/* Switching the driver's tracepoints off, when a driver that is sick may keep the call for ever: a thread of its own makes it. */
#ifndef NPS_TRACE_OFF_H
#define NPS_TRACE_OFF_H

#include <stdbool.h>

#include "trace_switch.h"

#define NPS_TRACE_OFF_MS 2000 /* that the driver is given */

/*
 * nps_trace_switch__off(S), for NPS_TRACE_OFF_MS at most, in which MEANWHILE, if there is one, is called with ARG some ten times a
 * second. False, with a line that says so: the driver did not come back. It may do so later; what it did not do by the end of this
 * process is left to the next one, as after a kill -9.
 */
bool nps_trace_off(struct nps_trace_switch *s, void (*meanwhile)(void *arg), void *arg);

/* nps_trace_switch__restore(PLACES), which have to stay, within the same time; false likewise. */
bool nps_trace_restore(const struct nps_trace_places *places);

#endif
