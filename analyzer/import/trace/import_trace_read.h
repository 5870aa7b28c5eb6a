/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reader of trace files (outputs 2.1): an array of events, or an object that holds one as traceEvents, or
 * several of these in a row, as joined slices are; plain or gzip; of any size, through a window. Anything
 * but events is counted and skipped.
 */
#ifndef NPS_IMPORT_TRACE_READ_H
#define NPS_IMPORT_TRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value: a string without quotes and escapes, or a number; valid until the next event. NULL: not there. */
struct nps_trace_text {
	const char *at;
	uint32_t len;
};

/* Members of `args` that are kept. */
enum nps_trace_arg {
	NPS_TRACE_NAME, /* of metadata */
	NPS_TRACE_LABELS,
	NPS_TRACE_SORT_INDEX,
	NPS_TRACE_CONNECTION,
	NPS_TRACE_TASK_TYPE,
	NPS_TRACE_STREAM,
	NPS_TRACE_TASK,
	NPS_TRACE_BATCH,
	NPS_TRACE_SUBTASK,
	NPS_TRACE_MODEL,
	NPS_TRACE_SIZE,
	NPS_TRACE_CORRELATION,
	NPS_TRACE_SEQUENCE,
	NPS_TRACE_FORWARD,
	NPS_TRACE_SHAPES,
	NPS_TRACE_TYPES,
	NPS_TRACE_STACK,
	NPS_TRACE_ITEM,
	NPS_TRACE_SUBTYPE, /* "task type" of a part of a collective */
	NPS_TRACE_ALGORITHM,
	NPS_TRACE_COUNT,
	NPS_TRACE_SOURCE, /* npuscope's: where a task's time came from, and its bounds */
	NPS_TRACE_START_LOW,
	NPS_TRACE_START_HIGH,
	NPS_TRACE_END_LOW,
	NPS_TRACE_END_HIGH,
	NPS_TRACE_ARGS
};

struct nps_trace_event {
	char phase;
	bool timed;
	uint64_t start, end; /* ns; end is start without a duration */
	struct nps_trace_text name, cat, pid, tid;
	struct nps_trace_text value[NPS_TRACE_ARGS]; /* by enum nps_trace_arg */
};

struct nps_trace_reader {
	void *file; /* gzFile */
	char *buf;
	size_t at, len;
	bool end; /* nothing behind the window */
	int err;
	bool open; /* within the list of events */
	bool object; /* the list is a member of an object */
	uint64_t damaged; /* events */
	uint64_t behind; /* bytes behind the last list */
	bool closed; /* a list has ended */
	bool cut; /* the file ends within the list */
	uint64_t read; /* bytes, after decompression */
};

/* 0, -EILSEQ if it holds no list of events, or negative errno. */
int nps_trace__open(struct nps_trace_reader *reader, const char *path);
void nps_trace__close(struct nps_trace_reader *reader);

/* The next event: 1, 0 at the end, or negative errno. */
int nps_trace__next(struct nps_trace_reader *reader, struct nps_trace_event *event);

/* TEXT as an integer; false if it is none. */
bool nps_trace__u64(const struct nps_trace_text *text, uint64_t *value);
bool nps_trace__i64(const struct nps_trace_text *text, int64_t *value);

/* TEXT, us with decimals, as ns; false if it is none. */
bool nps_trace__ns(const struct nps_trace_text *text, uint64_t *ns);

#endif
