/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's view of the NPU's driver during a capture: system calls on its device nodes, and what its
 * own functions do, as far as this kernel and this version of the driver allow.
 */
#ifndef NPS_DRIVER_TRACER_H
#define NPS_DRIVER_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "attach/bpf_loader.h"
#include "capture/record_opts.h"

struct nps_driver_tracer;

/*
 * Loads and attaches what OPTS requests. *OUT is NULL if there is nothing
 * to watch: no such node on this host, or a kernel without support. Returns
 * -errno only if it was requested explicitly; the reason has been printed.
 */
int nps_driver_tracer__start(struct nps_bpf_loader *k, const struct nps_driver_opts *opts, size_t ring_bytes,
			     struct nps_driver_tracer **out);

struct nps_session_writer;

/*
 * Copies the driver's files in /proc into the session, folder driver/begin or, at the END, driver/end. It
 * can take long, so not while records are written. NULL is allowed, here and below.
 */
void nps_driver_tracer__copy_proc(struct nps_driver_tracer *d, struct nps_session_writer *s, bool end);

/* Searches the host for new nodes. Call now and then. */
void nps_driver_tracer__scan(struct nps_driver_tracer *d);
/*
 * The same in the root of process PID, whose container can have nodes that the host lacks. Nodes whose
 * number is not the driver's are rejected, with a line for the first.
 */
void nps_driver_tracer__scan_process(struct nps_driver_tracer *d, pid_t pid);

/*
 * ON: watches the calls of all processes of the host; else stops that. Call with
 * nps_bpf_loader__watch_all().
 */
void nps_driver_tracer__watch_all(struct nps_driver_tracer *d, bool on);
/* The capture ends at NOW, CLOCK_MONOTONIC ns: call just before nps_bpf_loader__end(). */
void nps_driver_tracer__end(struct nps_driver_tracer *d, uint64_t now);

/*
 * At the end, after R has read everything: reports what was requested and is missing by its counts. Returns
 * whether there is any.
 */
struct nps_reader;
bool nps_driver_tracer__lacks(const struct nps_driver_tracer *d, const struct nps_bpf_loader *k,
			      const struct nps_reader *r);

/*
 * After the end: switches the driver's tracepoints off. This calls into the driver, so it has a time limit:
 * MEANWHILE as in trace_off.h. False: the driver did not return, which was reported.
 */
bool nps_driver_tracer__silence(struct nps_driver_tracer *d, void (*meanwhile)(void *arg), void *arg);

/* Detaches all programs. */
void nps_driver_tracer__detach(struct nps_driver_tracer *d);
/* After that: adds losses from skipped programs to the counts of K, of which no program may be attached. */
void nps_driver_tracer__settle(const struct nps_driver_tracer *d, struct nps_bpf_loader *k);
/* True for kinds of events (enum nps_kind) whose losses this kernel does not count. */
bool nps_driver_tracer__uncounted(const struct nps_driver_tracer *d, int event);

/* Calls EACH for every loaded program. */
void nps_driver_tracer__for_each_program(const struct nps_driver_tracer *d,
					 void (*each)(const char *name, int fd, void *arg), void *arg);
void nps_driver_tracer__free(struct nps_driver_tracer *d);

/* Adds "driver" to the session. */
void nps_driver_tracer__describe(const struct nps_driver_tracer *d, cJSON *session);

#endif
