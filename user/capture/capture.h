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

#include "attach/capability.h"
#include "capture/cost_source.h"
#include "core/deadline.h"
#include "driver/device_facts.h"
#include "driver/device_launcher.h"
#include "driver/driver_query.h"
#include "attach/bpf_loader.h"
#include "capture/log_budget.h"
#include "attach/operators.h"
#include "core/privilege.h"
#include "attach/probes.h"
#include "capture/process.h"
#include "attach/reader.h"
#include "capture/record_opts.h"
#include "core/session_writer.h"
#include "capture/source.h"

struct nps_device_sampler;
struct nps_refused;

#define NPS_PID_SLOTS 1024

/*
 * What sources share (source.h). The source named in a comment sets the member; before its start, and if it
 * is not wanted, the member is NULL or zero. Other sources use it through the member's own header.
 */
struct nps_shared {
	struct nps_capability cap; /* calls: what this kernel and this process can do */
	struct nps_bpf_loader *kernel; /* calls */
	const struct nps_capability *kernel_cap; /* calls: as it was when programs were loaded */
	struct nps_operators operators; /* calls */
	struct nps_probes *probes; /* calls */
	struct nps_reader *reader; /* calls */
	/* costs: what one occurrence costs; its child process is no part of the job */
	struct nps_cost_source costs;
	struct nps_device_launcher *launcher; /* queries: NULL: the driver's libraries cannot be loaded */
	struct nps_driver_query *query; /* queries: queue of queries to the driver */
	struct nps_device_facts facts; /* facts: of the devices that tasks are submitted to */
	struct nps_device_sampler *devices; /* devices: NULL: none are sampled */
	enum nps_privilege privilege; /* driver: what the main thread keeps until RESTORE */
	bool hung; /* queries, devices: a thread hangs, so what it uses must not be freed */
};

struct nps_capture {
	const struct nps_record_opts *opts;
	const struct nps_source_ops *const *rows; /* NULL: nps_source_rows */
	struct nps_source sources[NPS_SOURCES_MAX]; /* by row */
	struct nps_shared shared;
	struct nps_session_writer session;
	struct nps_log_budget logs;
	struct nps_process *processes; /* newest first */
	struct nps_process *by_pid[NPS_PID_SLOTS]; /* the same by pid (job_processes.h) */
	struct nps_process *orphans; /* the first whose parent is unknown; NULL: none */
	struct nps_budget work; /* of all processes together */
	/* children whose parents' budget does not allow a read of /proc yet; NULL: none */
	struct nps_refused *refused;
	size_t n_refused, next_refused; /* NEXT: which one is tried first next time */
	uint64_t retried; /* CLOCK_MONOTONIC ns: when they were tried last */
	size_t n_unread; /* processes known only from BPF events, without a read of /proc */
	uint64_t unread_left_out; /* further ones that are not listed */
	struct nps_process
		*next_polled; /* where the round over idle processes continues; NULL: at the first */
	pid_t child; /* of -- CMD, 0: none */
	int child_go; /* write here to let it exec */
	bool marker_found;
	bool torch_npu_found; /* a process has mapped libtorch_npu.so */
	uint64_t *searched; /* files already searched for the marker */
	size_t n_searched;
	int signals; /* signalfd: a signal on it ends the capture */
	uint64_t kept; /* CLOCK_MONOTONIC ns: last heartbeat to helpers while the capture begins */
	/* how long drivers, helpers and jobs are waited for once the capture ends */
	struct nps_deadline patience;
	bool armed; /* records flow */
	bool ending; /* nothing new is attached */
	struct nps_clock start, end;
	uint64_t begin_mono, end_mono;
	uint64_t attach_ns, detach_ns;
	uint64_t save_after; /* CLOCK_MONOTONIC ns: when session.json may be rewritten */
	uint64_t job_cpu_ns; /* of the watched processes during the capture */
	const char *end_reason;
	bool complete;
	cJSON *saved; /* session.json as it was last written; NULL: not yet */
	int save_error; /* -errno of the last write of session.json */
	bool described; /* a session.json was written since records began */
	bool write_error_reported; /* a stream's write error, which ended the capture, was reported */
	bool unreachable; /* the session has moved: c->session.path does not lead to it */
	bool degraded; /* something requested is missing: exit status 3 */
};

/*
 * A sender may repeat SIGTERM, and on a busy machine the second one may come
 * late: a capture that SIGTERM ended is saved with SIGTERM blocked, and stays
 * so. This call drops those pending and lets further ones end the program.
 */
void nps_capture__heed_sigterm(void);

/*
 * Captures according to OPTS. 0: the session at c->session.path is complete; -errno: nothing usable was
 * written, and the reason has been printed. Free with nps_capture__free() in both cases.
 */
int nps_capture__run(struct nps_capture *c, const struct nps_record_opts *opts);

/* The same with other sources than npuscope's: ROWS as in source.h; they must outlive C. */
int nps_capture__run_sources(struct nps_capture *c, const struct nps_record_opts *opts,
			     const struct nps_source_ops *const *rows);
void nps_capture__free(struct nps_capture *c);

/* Has a signal arrived that ends the capture? While the capture begins, slow steps then return -EINTR. */
bool nps_capture__interrupted(const struct nps_capture *c);

/*
 * Writes a result of the analysis into session.json: WHOLE of N stacks with user frames reach the thread's
 * start. Prints a failure, which leaves session.json unchanged. N 0: does nothing.
 */
void nps_capture__unwound(struct nps_capture *c, uint64_t n, uint64_t whole);

/* Number of all lost records. */
uint64_t nps_capture__dropped(const struct nps_capture *c);

/* session.json of the capture as it stands; free with cJSON_Delete. */
cJSON *nps_capture__describe(const struct nps_capture *c);

#endif
