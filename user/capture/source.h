/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event sources of a capture: whatever records, samples, or follows the job. The loop (capture.c) refers to
 * none of them by name: it walks a table of struct nps_source_ops, stage by stage. A new source is a file
 * source_NAME.c and a row in source_rows.h.
 *
 * All hooks run in the main thread; a NULL hook does nothing. A source does not call another source. It
 * shares what others need through struct nps_shared (capture.h), and events of processes go to all sources.
 * Walks may nest: a source that waits has KEEPALIVE and DRAIN turns made meanwhile (capture_parts.h).
 */
#ifndef NPS_SOURCE_H
#define NPS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "bpf_shared.h"

#define NPS_SOURCES_MAX 24 /* rows of a table */

/*
 * How long the stages of the end may wait for others, in all (c->patience, deadline.h): users accept some
 * two seconds after Ctrl-C, and detaching and writing take time as well. A source that waits leaves what
 * the later ones need.
 */
#define NPS_END_WAIT_NS 1500000000ULL
#define NPS_END_RESERVE_JOB_NS 300000000ULL /* for helpers in the job, when devices are stopped */
#define NPS_END_RESERVE_DRIVER_NS 100000000ULL /* for answers of the driver, when helpers are stopped */

struct nps_budget;
struct nps_capture;
struct nps_process;
struct nps_record_opts;
struct pollfd;

/* One source in one capture. */
struct nps_source {
	void *state; /* the source's own, NULL until its start creates it */
	bool wanted; /* selected by the options */
	/* it is optional and could not start: only count, describe, free, RESTORE and CANCEL are called */
	bool failed;
};

/* Stages of the start, in this order; in each the rows are walked from first to last. */
enum nps_start_stage {
	NPS_START_PREPARE, /* all capabilities, no session yet: checks, and what needs capabilities */
	NPS_START_FORK, /* the session exists; the last stage before this process has threads */
	NPS_START_ATTACH, /* programs and threads that do not depend on which processes are watched */
	NPS_START_TARGETS, /* the processes, then what depends on them: may wait, each time with a limit */
	NPS_START_ARM, /* recording begins: must not wait */
	NPS_START_RUN, /* capabilities are dropped, the loop follows: must not wait */
	NPS_START_STAGES
};

/* Reason of a turn. A turn must not wait: a walk over all sources should take well below 50 ms. */
enum nps_turn_kind {
	NPS_TURN_DRAIN, /* only read what has arrived: another source waits, or an exit is handled next */
	NPS_TURN_KEEPALIVE, /* another source waits: send heartbeats to those in the job that expect them */
	NPS_TURN_READY, /* a descriptor is readable, or 50 ms have passed, or less if a source wants that */
	NPS_TURN_ENDING, /* instead of READY while a source waits at the end: nothing new is attached */
	NPS_TURN_TICK, /* five times a second, 20 times in the first two seconds: clocks of devices */
	NPS_TURN_SECOND /* once a second */
};

/*
 * Stages of the end, in this order. In each the rows are walked from first to last;
 * "backwards": from last to first, because a source ends before those that it uses.
 * Signals are blocked up to RESTORE. A capture that could not begin only has RESTORE
 * and CANCEL, for every source that is wanted: its state may be NULL, or incomplete.
 */
enum nps_end_stage {
	/* backwards: prices and counts up to c->end_mono, which is set next; does not wait */
	NPS_END_ACCOUNT,
	NPS_END_DISARM, /* backwards: what happens after c->end_mono is not recorded; does not wait */
	NPS_END_COLLECT, /* saves the state at that time; recording threads end */
	NPS_END_RESTORE, /* undoes what would outlive this process */
	NPS_END_STOP, /* backwards: devices and the job are released; waits as long as c->patience allows */
	NPS_END_DETACH, /* backwards: programs and probes are detached; the same */
	NPS_END_SETTLE, /* reads the last records, and accounts for them */
	NPS_END_FINISH, /* writes what was kept; posts the last queries to the driver */
	NPS_END_REPORT, /* waits for the answers, as long as c->patience allows; reports what is missing */
	NPS_END_RELEASE, /* the last threads end; reports what else is missing */
	NPS_END_LAST, /* what a faulty driver may delay: session.json is written before, and again after it */
	NPS_END_CANCEL, /* backwards: all threads end, so that the session can be removed */
	NPS_END_STAGES
};

enum nps_source_event_kind {
	NPS_EVENT_LISTED, /* `p` was added to the list of processes; it may have exited already */
	NPS_EVENT_WATCHED, /* `p` is a target, and alive; not while the capture ends */
	NPS_EVENT_SCAN, /* `p` is scanned; `mapped`: it may have mapped something since */
	NPS_EVENT_LIBRARY, /* a process has the driver's library libascend_hal.so: `fd`, open, of `path` */
	/* `p` has set `device`, by its own number, or, with `submits`, submitted to it for the first time */
	NPS_EVENT_DEVICE,
	/* `p` has called exec; backwards: a source that uses another's part of it ends first */
	NPS_EVENT_EXECUTED,
	NPS_EVENT_EXITED
};

/* An event of a process of the job. */
struct nps_source_event {
	enum nps_source_event_kind kind;
	struct nps_process *p; /* NULL in LIBRARY */
	struct nps_budget *budget; /* of SCAN and LIBRARY: limit of the work; NULL: none */
	const char *path;
	int fd;
	uint32_t device;
	bool mapped, submits;
};

/* What was recorded and lost so far. Every source adds its part. */
struct nps_lost_counts {
	uint64_t events[NPS_KIND_END], lost[NPS_KIND_END]; /* by enum nps_kind */
	bool uncounted[NPS_KIND_END]; /* this kernel does not count lost ones */
	uint64_t summed; /* system calls in sums */
	/* "drops" of session.json */
	uint64_t host, device, sums, profiler, profiler_calls, sqe, processes;
	uint64_t dropped; /* lost records that are not in `lost`; bytes count as one per 64 */
};

/* Sections of session.json, in the order in which they are written. */
enum nps_section {
	NPS_SECTION_REQUEST, /* `part`: "request" */
	NPS_SECTION_DEVICES, /* `part`: the list "devices" */
	NPS_SECTION_SESSION, /* `part`: the session; the usual one */
	NPS_SECTION_DROPS, /* `part`: "drops" */
	NPS_SECTION_TOTALS, /* `part`: the session; after "drops" */
	NPS_SECTION_COST, /* `part`: the session; for the cost account */
	NPS_SECTION_COST_PART /* `part`: "cost": what the source itself used */
};

typedef void (*nps_program_fn)(const char *name, int fd, void *arg);

struct nps_source_ops {
	const char *name; /* unique; for --verbose */
	bool optional; /* if it cannot start the capture is degraded; otherwise the capture does not begin */
	const char *uncosted; /* what the cost account omits of it, as in "stacks not counted" */

	/* Do the options request it? NULL: always. If not, only count and describe are called. */
	bool (*wanted)(const struct nps_record_opts *opts);

	/* One stage of the start. 0, or -errno after a message with what is missing and what to do. */
	int (*start)(struct nps_capture *c, struct nps_source *s, enum nps_start_stage stage);

	/*
	 * Returns a descriptor that the loop polls for input, -1: none. May
	 * lower *WAIT_MS, the time to the next turn.
	 */
	int (*fd)(struct nps_capture *c, struct nps_source *s, int *wait_ms);

	/*
	 * NULL; or, from READY, why the capture ends: a literal, which becomes "end_reason" of session.json.
	 */
	const char *(*turn)(struct nps_capture *c, struct nps_source *s, enum nps_turn_kind kind);

	/* 0, or -ETIME: the budget of SCAN was spent before the work was done, it is repeated. */
	int (*process)(struct nps_capture *c, struct nps_source *s, const struct nps_source_event *e);

	/* One stage of the end. What cannot be done is reported, and makes the capture degraded. */
	void (*end)(struct nps_capture *c, struct nps_source *s, enum nps_end_stage stage);

	/*
	 * Adds to N. Called at any time, also if the source is not wanted, not
	 * started or failed: state may be NULL.
	 */
	void (*count)(const struct nps_capture *c, const struct nps_source *s, struct nps_lost_counts *n);

	/* Adds to PART of session.json. Called at any time, like count. */
	void (*describe)(const struct nps_capture *c, const struct nps_source *s, enum nps_section section,
			 cJSON *session, cJSON *part);

	/* Calls EACH with each BPF program that it has loaded. */
	void (*programs)(const struct nps_capture *c, const struct nps_source *s, nps_program_fn each,
			 void *arg);

	/* Prints lines for the terminal, after the end. */
	void (*print)(const struct nps_capture *c, const struct nps_source *s, FILE *out);

	/* Frees the state, in any state of start and end; backwards. */
	void (*free)(struct nps_capture *c, struct nps_source *s);
};

/* The sources of npuscope, NULL-terminated. */
extern const struct nps_source_ops *const nps_source_rows[];

/* ROWS: a table as above, which must outlive C; NULL: that one. c->opts is set. */
void nps_sources__init(struct nps_capture *c, const struct nps_source_ops *const *rows);

/* One stage of all sources. 0, or -errno of one that is not optional: later ones are not started. */
int nps_sources__start(struct nps_capture *c, enum nps_start_stage stage);

/* Fills FDS, which has room for NPS_SOURCES_MAX, and lowers *WAIT_MS. Returns the number of descriptors. */
size_t nps_sources__fds(struct nps_capture *c, struct pollfd *fds, int *wait_ms);

/* One turn of all sources. Returns the first reason to end the capture; NULL: none. */
const char *nps_sources__turn(struct nps_capture *c, enum nps_turn_kind kind);

/* Sends E to all sources. 0, or the first error. */
int nps_sources__process(struct nps_capture *c, const struct nps_source_event *e);

/* Call the other hooks of all sources. *N is the sum. */
void nps_sources__end(struct nps_capture *c, enum nps_end_stage stage);
void nps_sources__count(const struct nps_capture *c, struct nps_lost_counts *n);
void nps_sources__describe(const struct nps_capture *c, enum nps_section section, cJSON *session,
			   cJSON *part);
void nps_sources__programs(const struct nps_capture *c, nps_program_fn each, void *arg);
void nps_sources__print(const struct nps_capture *c, FILE *out);
void nps_sources__free(struct nps_capture *c);

/* Writes what is recorded and not in the cost account, as "stacks and driver calls"; "": nothing. */
void nps_sources__uncosted(const struct nps_capture *c, char *text, size_t size);

#endif
