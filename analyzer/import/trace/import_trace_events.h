/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events of a trace as rows by start, and what is known of their processes and threads. Events come in
 * any order and what their process is may come last, so they are sorted outside of memory first.
 */
#ifndef NPS_IMPORT_TRACE_EVENTS_H
#define NPS_IMPORT_TRACE_EVENTS_H

#include "base/ext_sort.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/model.h"

/* No event of a capture is longer: the end of one that is was never written. */
#define NPS_TRACE_LONGEST (30ULL * 86400 * 1000000000)

enum nps_traced_layer {
	NPS_TRACED_UNKNOWN,
	NPS_TRACED_PYTHON,
	NPS_TRACED_GC,
	NPS_TRACED_CANN,
	NPS_TRACED_OS,
	NPS_TRACED_HARDWARE,
	NPS_TRACED_COMMUNICATION,
	NPS_TRACED_LEFT_OUT,
	NPS_TRACED_FOREIGN
};

enum nps_trace_section { NPS_TRACE_QUEUE, NPS_TRACE_FRAMES, NPS_TRACE_REST, NPS_TRACE_SECTIONS };

struct nps_trace_process {
	uint64_t pid;
	enum nps_traced_layer layer;
	uint32_t device; /* of its label, NPS_NONE unknown */
	/* its number holds the job's and the device's (outputs 2.2), as its index in the order shows */
	bool vendor;
};

struct nps_trace_row {
	struct nps_sort_key order; /* start, ~end */
	uint64_t pid, tid;
	int64_t sequence, correlation, size;
	uint32_t name, type, connection, stream, task, batch, subtask, model;
	uint32_t shapes, types, stack, item, algorithm;
	uint32_t forward;
	uint32_t limits; /* row of nps_trace_events.limits, NPS_NONE: it was measured */
	uint8_t source; /* enum nps_time_source */
	bool op; /* by its category */
};

/* Between what moments a task that nobody measured began and ended; UINT64_MAX: open. */
struct nps_trace_limits {
	uint64_t start_low, start_high, end_low, end_high;
};

struct nps_trace_events {
	struct nps_ext_sort sections[NPS_TRACE_SECTIONS]; /* struct nps_trace_row */
	struct nps_map processes; /* pid -> row of process */
	struct nps_vec process; /* struct nps_trace_process */
	struct nps_map threads; /* hash of pid and tid -> text: name */
	struct nps_vec limits; /* struct nps_trace_limits */
	uint64_t latest; /* start, ns */
	uint64_t app; /* pid of the Python process, 0 none */
};

/*
 * Reads all slices of the trace, of which PATH is one or the only one. What is damaged is counted in M. 0 or
 * a negative errno, -EILSEQ if it is no trace; free EVENTS in either case.
 */
int nps_trace_events__read(struct nps_trace_events *events, struct nps_model *m, const char *path);
void nps_trace_events__free(struct nps_trace_events *events);

#endif
