/* SPDX-License-Identifier: BSD-2-Clause */
/* One capture, from the first probe to the closed session. */
#ifndef NPS_CAPTURE_H
#define NPS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "capability.h"
#include "cost_source.h"
#include "deadline.h"
#include "device_facts.h"
#include "device_launcher.h"
#include "driver_ask.h"
#include "kernel_side.h"
#include "log_budget.h"
#include "operators.h"
#include "privilege.h"
#include "probes.h"
#include "process.h"
#include "reader.h"
#include "record_opts.h"
#include "session_writer.h"
#include "source.h"

struct nps_device_sampler;
struct nps_refused;

#define NPS_PID_SLOTS 1024

/*
 * What sources share (source.h). The source that a comment names writes the member; until its start, and where it is
 * not wanted, the member is NULL or zero. The others use it through its own header.
 */
struct nps_shared {
	struct nps_capability cap; /* calls: what this kernel and this process can do */
	struct nps_kernel_side *kernel; /* calls */
	const struct nps_capability *kernel_cap; /* calls: as found when programs were loaded */
	struct nps_operators operators; /* calls */
	struct nps_probes *probes; /* calls */
	struct nps_reader *reader; /* calls */
	struct nps_cost_source costs; /* costs: what one occurrence costs; its child is no part of the job */
	struct nps_device_launcher *launcher; /* queries: NULL: the driver's libraries cannot be loaded */
	struct nps_driver_ask *ask; /* queries: to the driver */
	struct nps_device_facts facts; /* facts: of the devices that tasks are submitted to */
	struct nps_device_sampler *devices; /* devices: NULL: none is sampled */
	enum nps_privilege privilege; /* driver: what the main thread keeps until RESTORE */
	bool hung; /* queries, devices: a thread did not come back: what it uses is not freed */
};

struct nps_capture {
	const struct nps_record_opts *opts;
	const struct nps_source_ops *const *rows; /* NULL: nps_source_rows */
	struct nps_source sources[NPS_SOURCES_MAX]; /* by row */
	struct nps_shared shared;
	struct nps_session session;
	struct nps_log_budget logs;
	struct nps_process *processes; /* the last one first */
	struct nps_process *by_pid[NPS_PID_SLOTS]; /* the same by pid, job_processes.h */
	struct nps_process *orphans; /* the first that was born of nobody knows whom; NULL: none was */
	struct nps_budget work; /* of all of them together */
	struct nps_refused *
		refused; /* births whose parents could not pay for a look, until they can; NULL: there was none */
	size_t n_refused, next_refused; /* NEXT: which is tried first the next time */
	uint64_t retried; /* CLOCK_MONOTONIC ns: when they were tried last */
	size_t n_unread; /* processes that are known by the kernel side's word alone */
	uint64_t unread_left_out; /* more of them than are listed */
	struct nps_process
		*next_look; /* at whom the turns of those that do not run go on; NULL: at the first */
	pid_t child; /* of -- CMD, 0: none */
	int child_go; /* write here to let it exec */
	bool marker_found;
	uint64_t *searched; /* files that were searched for the marker */
	size_t n_searched;
	int signals; /* signalfd: one ends the capture */
	uint64_t kept; /* CLOCK_MONOTONIC ns: helpers had a sign of life while the capture begins */
	struct nps_deadline patience; /* with drivers, helpers and jobs, once the capture ends */
	bool armed; /* records flow */
	bool ending; /* nothing new is attached any more */
	struct nps_clock start, end;
	uint64_t begin_mono, end_mono;
	uint64_t attach_ns, detach_ns;
	uint64_t save_after; /* CLOCK_MONOTONIC ns: when session.json may be rewritten */
	uint64_t job_cpu_ns; /* of the watched processes during the capture */
	const char *end_reason;
	bool complete;
	cJSON *saved; /* session.json as it was last written; NULL: not yet */
	int save_error; /* -errno of the last time that session.json was written */
	bool described; /* a session.json was written since records flow */
	bool write_error_reported; /* that of a stream, which ended the capture */
	bool unreachable; /* the session is somewhere where c->session.path does not lead to */
	bool degraded; /* something asked for is missing: exit status 3 */
};

/*
 * Who ends a program may say so twice, and the second time may be late on a busy machine: a capture that SIGTERM ended is saved
 * with SIGTERM blocked, and leaves it so. From now on one ends the program; what has come until now is forgotten.
 */
void nps_capture__heed_sigterm(void);

/*
 * Captures as asked. 0: the session at c->session.path is complete; -errno: nothing
 * usable was written, and the reason has been printed. Free with nps_capture__free either way.
 */
int nps_capture__run(struct nps_capture *c, const struct nps_record_opts *opts);

/* The same of other sources than npuscope's: ROWS as in source.h, which outlive C. */
int nps_capture__run_sources(struct nps_capture *c, const struct nps_record_opts *opts,
			     const struct nps_source_ops *const *rows);
void nps_capture__free(struct nps_capture *c);

/* Has a signal come that ends the capture? While it begins, what takes long returns -EINTR then. */
bool nps_capture__interrupted(const struct nps_capture *c);

/*
 * Writes into session.json what the analysis found: of N stacks with a part in user space WHOLE lead to where the thread began. A
 * failure is said, and leaves session.json as it was. N 0 does nothing.
 */
void nps_capture__unwound(struct nps_capture *c, uint64_t n, uint64_t whole);

/* Sum of everything that was lost. */
uint64_t nps_capture__dropped(const struct nps_capture *c);

/* session.json of the capture as it stands; free with cJSON_Delete. */
cJSON *nps_capture__describe(const struct nps_capture *c);

#endif
