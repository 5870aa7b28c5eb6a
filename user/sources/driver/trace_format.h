/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layout of the records of the NPU driver's tracepoints, read from
 * tracefs, so that it fits any version of the driver.
 */
#ifndef NPS_TRACE_FORMAT_H
#define NPS_TRACE_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "event.h"
#include "bpf_shared.h"
#include "sources/driver/trace_switch.h"

/* trs_chan:sqe, and trs_core:logic_cqe. */
extern const char *const nps_trace_event[NPS_TRACE_SYSTEMS];
extern const char *const nps_trace_system[NPS_TRACE_SYSTEMS];

/*
 * Reads a tracepoint's "format" file. False: a field is missing, or has
 * another width; fields about errors may be missing.
 */
bool nps_trace_format__parse(FILE *format, enum nps_trace_system system, struct nps_trace_layout *layout);

/* Reads it from tracefs, wherever that is mounted; see nps_tracefs__with(). */
bool nps_trace_format__read(enum nps_trace_system system, struct nps_trace_layout *layout);

#endif
