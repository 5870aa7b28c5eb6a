/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NPU's driver as the kernel sees it, while a capture runs: system calls on its device nodes, and what its own
 * functions do, as far as this kernel and this version of the driver let it be seen.
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
 * Loads and attaches what OPTS asks for. *OUT is NULL if there is nothing to watch: no such node on this host, or a
 * kernel that cannot; -errno then only if it was asked for, and a line was printed.
 */
int nps_driver_side__start(struct nps_kernel_side *k, const struct nps_driver_opts *opts, size_t ring_bytes,
			   struct nps_driver_side **out);

struct nps_session;

/*
 * Copies what the driver tells of itself in /proc into the session, folder driver/begin or, at the END, driver/end. It can take
 * long: not while something is recorded. NULL is fine, as for all that follow.
 */
void nps_driver_side__copy_proc(struct nps_driver_side *d, struct nps_session *s, bool end);

/* Looks for nodes that came since, on the host. Call now and then. */
void nps_driver_side__look(struct nps_driver_side *d);
/*
 * The same in the root of process PID, whose container can have nodes that the host has not: those whose number is not one of the
 * driver's are refused, with a line for the first.
 */
void nps_driver_side__look_at(struct nps_driver_side *d, pid_t pid);

/* Every process of the host is watched for calls, or no longer: beside nps_kernel_side__watch_all. */
void nps_driver_side__watch_all(struct nps_driver_side *d, bool on);
/* The capture ends at NOW, CLOCK_MONOTONIC ns: just before nps_kernel_side__end. */
void nps_driver_side__end(struct nps_driver_side *d, uint64_t now);

/*
 * The capture is over, R has read everything: says what its counts tell of what was asked for and could not be had. Returns
 * whether there was such a thing.
 */
struct nps_reader;
bool nps_driver_side__lacks(const struct nps_driver_side *d, const struct nps_kernel_side *k,
			    const struct nps_reader *r);

/*
 * After the end: the driver's tracepoints are silent again. The one call into the driver here, with a limit: MEANWHILE as in
 * trace_off.h. False: the driver did not come back, and a line says so.
 */
bool nps_driver_side__silence(struct nps_driver_side *d, void (*meanwhile)(void *arg), void *arg);

/* Nothing is recorded any more. */
void nps_driver_side__detach(struct nps_driver_side *d);
/* Then: what was lost since the kernel left programs out goes to the counts of K, of which no program may be attached. */
void nps_driver_side__settle(const struct nps_driver_side *d, struct nps_kernel_side *k);
/* True of kinds of events (enum nps_kind) whose losses this kernel does not count. */
bool nps_driver_side__uncounted(const struct nps_driver_side *d, int event);

/* Each program that is loaded. */
void nps_driver_side__for_each_program(const struct nps_driver_side *d,
				       void (*each)(const char *name, int fd, void *arg), void *arg);
void nps_driver_side__free(struct nps_driver_side *d);

/* Adds "driver" to the session. */
void nps_driver_side__describe(const struct nps_driver_side *d, cJSON *session);

#endif
