/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's view of the NPU's driver during a capture: system calls on its device nodes, and what its
 * own functions do, as far as this kernel and this version of the driver allow.
 */
#ifndef NPS_DRIVER_SIDE_H
#define NPS_DRIVER_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "kernel_side.h"
#include "record_opts.h"

struct nps_driver_side;

/*
 * Loads and attaches what OPTS requests. *OUT is NULL if there is nothing
 * to watch: no such node on this host, or a kernel without support. Returns
 * -errno only if it was requested explicitly; the reason has been printed.
 */
int nps_driver_side__start(struct nps_kernel_side *k, const struct nps_driver_opts *opts, size_t ring_bytes,
			   struct nps_driver_side **out);

struct nps_session;

/*
 * Copies the driver's files in /proc into the session, folder driver/begin or, at the END, driver/end. It
 * can take long, so not while records are written. NULL is allowed, here and below.
 */
void nps_driver_side__copy_proc(struct nps_driver_side *d, struct nps_session *s, bool end);

/* Searches the host for new nodes. Call now and then. */
void nps_driver_side__look(struct nps_driver_side *d);
/*
 * The same in the root of process PID, whose container can have nodes that the host lacks. Nodes whose
 * number is not the driver's are rejected, with a line for the first.
 */
void nps_driver_side__look_at(struct nps_driver_side *d, pid_t pid);

/*
 * ON: watches the calls of all processes of the host; else stops that. Call with
 * nps_kernel_side__watch_all().
 */
void nps_driver_side__watch_all(struct nps_driver_side *d, bool on);
/* The capture ends at NOW, CLOCK_MONOTONIC ns: call just before nps_kernel_side__end(). */
void nps_driver_side__end(struct nps_driver_side *d, uint64_t now);

/*
 * At the end, after R has read everything: reports what was requested and is missing by its counts. Returns
 * whether there is any.
 */
struct nps_reader;
bool nps_driver_side__lacks(const struct nps_driver_side *d, const struct nps_kernel_side *k,
			    const struct nps_reader *r);

/*
 * After the end: switches the driver's tracepoints off. This calls into the driver, so it has a time limit:
 * MEANWHILE as in trace_off.h. False: the driver did not return, which was reported.
 */
bool nps_driver_side__silence(struct nps_driver_side *d, void (*meanwhile)(void *arg), void *arg);

/* Detaches all programs. */
void nps_driver_side__detach(struct nps_driver_side *d);
/* After that: adds losses from skipped programs to the counts of K, of which no program may be attached. */
void nps_driver_side__settle(const struct nps_driver_side *d, struct nps_kernel_side *k);
/* True for kinds of events (enum nps_kind) whose losses this kernel does not count. */
bool nps_driver_side__uncounted(const struct nps_driver_side *d, int event);

/* Calls EACH for every loaded program. */
void nps_driver_side__for_each_program(const struct nps_driver_side *d,
				       void (*each)(const char *name, int fd, void *arg), void *arg);
void nps_driver_side__free(struct nps_driver_side *d);

/* Adds "driver" to the session. */
void nps_driver_side__describe(const struct nps_driver_side *d, cJSON *session);

#endif
