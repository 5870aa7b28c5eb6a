/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the records of the NPU driver's tracepoints have their fields: tracefs says so, for any version of the driver. */
#ifndef NPS_TRACE_FORMAT_H
#define NPS_TRACE_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "event.h"
#include "bpf_shared.h"
#include "trace_switch.h"

/* trs_chan:sqe, and trs_core:logic_cqe. */
extern const char *const nps_trace_event[NPS_TRACE_SYSTEMS];
extern const char *const nps_trace_system[NPS_TRACE_SYSTEMS];

/* Reads the text of a tracepoint's "format". False: it lacks a field, or has it in another width; it need not tell of errors. */
bool nps_trace_format__parse(FILE *format, enum nps_trace_system system, struct nps_trace_layout *layout);

/* Reads it from tracefs, where it is mounted; see nps_tracefs__with. */
bool nps_trace_format__read(enum nps_trace_system system, struct nps_trace_layout *layout);

#endif
