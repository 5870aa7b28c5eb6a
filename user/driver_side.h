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

struct nps_driver_opts {
	bool calls; /* system calls on device nodes */
	bool tasks; /* SQEs, CQEs and copies that pass through the driver */
	bool given; /* somebody asked for it: what cannot be had is said, and makes the capture an incomplete one */
};

struct nps_driver_side;

/* What parses to OPTS. */
const char *nps_driver_opts__name(const struct nps_driver_opts *opts);

/* Parses "none", or "calls" and "tasks" with a comma between. -EINVAL. */
int nps_driver_opts__parse(struct nps_driver_opts *opts, const char *text);

/*
 * Loads and attaches what OPTS asks for. *OUT is NULL if there is nothing to watch: no such node on this host, or a
 * kernel that cannot; -errno then only if it was asked for, and a line was printed. ALL: every process of the host.
 */
int nps_driver_side__start(struct nps_kernel_side *k, const struct nps_driver_opts *opts, bool all,
			   size_t ring_bytes, struct nps_driver_side **out);

struct nps_session;

/* Copies what the driver tells of itself in /proc into folder DIR of the session. */
void nps_driver_side__copy_proc(const struct nps_driver_side *d, struct nps_session *s, const char *dir);

/* Looks for nodes that came since, on the host. Call now and then. NULL is fine, as for all that follow. */
void nps_driver_side__look(struct nps_driver_side *d);
/* The same in the root of process PID, whose container can have nodes that the host has not. */
void nps_driver_side__look_at(struct nps_driver_side *d, pid_t pid);

/*
 * The capture is over: a line for each device whose tasks did not pass through the driver. Returns whether something that was
 * asked for could not be had.
 */
bool nps_driver_side__lacks(const struct nps_driver_side *d);

/* Nothing is recorded any more. */
void nps_driver_side__detach(struct nps_driver_side *d);
void nps_driver_side__free(struct nps_driver_side *d);

/* Adds "driver" to the session. */
void nps_driver_side__describe(const struct nps_driver_side *d, cJSON *session);

#endif
