/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From what a profiler recorded to results that MindStudio Insight, msprof-analyze, Perfetto and
 * chrome://tracing open. Needs no root and no NPU.
 */
#ifndef NPS_ANALYZE_H
#define NPS_ANALYZE_H

#include "base/progress.h"
#include "export/formats.h"
#include "model/lost.h"
#include "model/step_source.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct nps_input;
struct nps_model;

#define NPS_FORMAT_DEFAULT (NPS_FORMAT_TEXT | NPS_FORMAT_DB)

enum nps_compat { NPS_COMPAT_AUTO, NPS_COMPAT_A, NPS_COMPAT_B };

struct nps_analyze_opts {
	size_t size; /* sizeof(struct nps_analyze_opts): the structure may grow */
	const char *output; /* existing directory; NULL: in the input's own */
	unsigned int formats; /* NPS_FORMAT_*; 0: only count */
	enum nps_compat compat; /* generation of names; AUTO: the input's own */
	bool gzip; /* trace_view.json.gz */
	bool show_self; /* threads of npuscope's helper library in the job, too */
	enum nps_step_source steps; /* where they come from; of other inputs than sessions AUTO is MARKER */
	unsigned int processes; /* at most so many at once; 0: half of the CPUs */
	enum nps_progress_mode progress;
	/* Called with each derived model before it is written; with processes 1 in the caller's process. */
	int (*inspect)(void *ctx, const struct nps_model *model);
	void *ctx;
};

struct nps_summary_op {
	char name[128]; /* type of the operator; "" after the last */
	uint64_t count;
	uint64_t total_ns; /* of the measured ones */
	uint64_t measured; /* of count */
};

struct nps_summary_proc {
	uint32_t pid, rank;
	bool has_rank; /* else rank is the device's number */
	char comm[128];
	uint64_t device_tasks; /* all, however their time is known */
	uint64_t measured; /* by the device or by another profiler */
	uint64_t host_bounds; /* submission without a device record */
	uint64_t before_capture; /* device log without a submission */
	uint64_t launches; /* kernels launched */
	uint64_t collectives, api_calls, torch_ops, os_calls, switches, steps;
	uint64_t samples; /* of what processes use of the host */
	uint32_t helper_threads; /* of npuscope's own library in the job, which are left out */
	uint64_t stacks; /* with a part in user space */
	uint64_t whole_stacks; /* of them, those that lead to where the thread began */
	struct nps_summary_op top[10]; /* by total time, then count */
	double clock_error_us, clock_worst_us,
		clock_drift_ppm; /* most of its devices; 0 without a device log */
	struct nps_lost losses[32]; /* count 0 after the last */
	char path[PATH_MAX]; /* of its result, "" if none was written */
};

/* A process beside the job that ran where the job waited. */
struct nps_summary_neighbour {
	uint32_t pid;
	char comm[32];
	uint64_t run_ns,
		contended_ns; /* on a CPU in all; of it while threads of the job waited for that CPU */
};

struct nps_summary {
	struct nps_summary_proc *procs;
	size_t nprocs; /* those with a result */
	uint64_t events_lost; /* kernel rings */
	uint64_t strings_lost, agent_bytes_lost, device_records_lost, submissions_truncated;
	uint64_t host_lost; /* processes and devices that were not sampled */
	struct nps_summary_neighbour neighbours[5]; /* contended_ns 0 after the last */
	bool cut; /* the capture or a file ended early */
	bool incomplete; /* something was lost, cut or unavailable: exit status 3 */
};

/*
 * Analyses INPUT. 0, or a negative errno with the reason on stderr. A result exists whole or not at all;
 * results of processes that were complete before an error stay. OUT may be NULL; else it is filled, after
 * an error with what is known, and nps_summary_free() releases it.
 */
int nps_analyze_input(const struct nps_input *input, const struct nps_analyze_opts *opts,
		      struct nps_summary *out);

/* The same for the session directory of `npuscope record`. */
int nps_analyze(const char *session_dir, const struct nps_analyze_opts *opts, struct nps_summary *out);

/* The table that `record` and `analyze` end with. */
void nps_summary_print(FILE *file, const struct nps_summary *summary);
void nps_summary_free(struct nps_summary *summary);

/* The subcommand. Exit status 0 done, 1 failed, 2 wrong usage, 3 done but something was lost. */
int nps_cmd_analyze(int argc, char **argv);

#endif
