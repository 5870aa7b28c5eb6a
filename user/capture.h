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
#include "device_sampler.h"
#include "driver_ask.h"
#include "driver_side.h"
#include "host_sys.h"
#include "kernel_side.h"
#include "log_budget.h"
#include "operators.h"
#include "privilege.h"
#include "probes.h"
#include "process.h"
#include "reader.h"
#include "session_writer.h"
#include "source.h"
#include "stacks.h"
#include "task_source.h"

struct nps_record_opts {
	size_t sz;
	int argc; /* of the command line, for the session */
	char **argv;
	const pid_t *pids;
	int n_pids;
	char **command; /* NULL-terminated; NULL: attach to pids */
	uint64_t duration_ns; /* 0: until a signal, or until the job ends */
	const char *out;
	int level;
	enum nps_task_source_kind task_source;
	const char *step_marker; /* function name, NULL: none */
	int step_arg; /* argument that carries the step's number, 0: none */
	size_t ring_bytes;
	uint64_t max_size; /* bytes of the session, 0: half of what is free on its disk */
	/* bytes a second of all task logs; half of it for a single one, or for a sampled device */
	uint64_t max_log_rate;
	double max_overhead; /* percent of the job's CPU time, 0: no limit */
	bool osrt, children;
	bool inject; /* load the helper library into processes that were started without it */
	bool irq; /* interrupts that stop the job's threads */
	struct nps_stacks_opts stacks; /* neither on_cpu nor off_cpu: none */
	/* the whole host: processes that use an NPU are found and recorded, the others are sampled */
	bool all;
	bool host_asked; /* the host was requested explicitly: a job without CANN is no error */
	unsigned int host_sys, host_sys_hz; /* NPS_HOST_SYS_* to sample, and samples a second */
	uint64_t osrt_threshold_ns; /* system calls shorter than this are summed up */
	bool shapes; /* of operators' tensors */
	bool keep_polled; /* keep probes on functions that the job polls and the kernel single-steps */
	struct nps_mstx_opts mstx;
	struct nps_device_opts devices; /* what is sampled of them */
	struct nps_driver_opts driver; /* what is recorded of the NPU's driver */
};

struct nps_refused;

#define NPS_PID_SLOTS 1024

/*
 * What sources share (source.h). The source named in a comment sets the member; before its start, and if it
 * is not wanted, the member is NULL or zero. Other sources use it through the member's own header.
 */
struct nps_shared {
	struct nps_capability cap; /* calls: what this kernel and this process can do */
	struct nps_kernel_side *kernel; /* calls */
	const struct nps_capability *kernel_cap; /* calls: as it was when programs were loaded */
	struct nps_operators operators; /* calls */
	struct nps_probes *probes; /* calls */
	struct nps_reader *reader; /* calls */
	/* costs: what one occurrence costs; its child process is no part of the job */
	struct nps_cost_source costs;
	struct nps_device_launcher *launcher; /* queries: NULL: the driver's libraries cannot be loaded */
	struct nps_driver_ask *ask; /* queries: queue of queries to the driver */
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
	struct nps_session session;
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
	struct nps_process *next_look; /* where the round over idle processes continues; NULL: at the first */
	pid_t child; /* of -- CMD, 0: none */
	int child_go; /* write here to let it exec */
	bool marker_found;
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
