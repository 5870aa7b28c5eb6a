/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Switches the driver's tracepoints off in a thread of its own, because
 * a faulty driver may never return from the call.
 */
#ifndef NPS_TRACE_OFF_H
#define NPS_TRACE_OFF_H

#include <stdbool.h>

#include "sources/driver/trace_switch.h"

#define NPS_TRACE_OFF_MS 2000 /* limit for the driver */

/*
 * Calls nps_trace_switch__off(S), for NPS_TRACE_OFF_MS at most; MEANWHILE, unless NULL, is called with ARG
 * some ten times a second. False: the driver did not return, which was reported. It may return later; what
 * is still on when this process ends is left to the next one, as after a kill -9.
 */
bool nps_trace_off(struct nps_trace_switch *s, void (*meanwhile)(void *arg), void *arg);

/* Calls nps_trace_switch__restore() within the same time; false likewise. The argument must stay valid. */
bool nps_trace_restore(const struct nps_trace_paths *paths);

#endif
