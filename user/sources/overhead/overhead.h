/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What watching costs the job during the capture: occurrences counted by BPF programs, multiplied by their
 * cost on this machine (cost_source.h), and the run time of BPF programs by the kernel's count. If it
 * exceeds the user's limit, recording is dropped in a fixed order.
 */
#ifndef NPS_OVERHEAD_H
#define NPS_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "capture/cost_account.h"

struct nps_capture;

#define NPS_OVERHEAD_PROGRAMS 48

struct nps_overhead {
	struct nps_account account;
	struct {
		uint64_t mono;
		double percent; /* of the job's CPU time, in the previous interval */
		enum nps_shed what;
	} shed[NPS_SHED_STAGES];
	unsigned int n_shed;
	/* The kernel's run statistics, collected in windows now and then, because they cost time too. */
	struct nps_bpf_stats *stats; /* NULL: not available */
	bool stats_requested;
	int stats_fd; /* -1: no window is open */
	uint64_t stats_at, stats_gap; /* monotonic ns; ns */
	struct {
		char name[32];
		uint64_t runs, ns; /* in all windows */
		uint64_t base_runs, base_ns; /* at the start of the window */
	} programs[NPS_OVERHEAD_PROGRAMS];
	unsigned int n_programs;
	/* walks of Python stacks; their ns in a mean call and mark, which the programs' times include */
	uint64_t python_walks, python_ns;
	double python_call_ns, python_mark_ns;
};

/* Call once, when the capture begins. */
void nps_overhead__begin(struct nps_overhead *o);

/* Call once after the last fork(2) of ours; starts a thread. */
void nps_overhead__start(struct nps_overhead *o);
void nps_overhead__free(struct nps_overhead *o);

/*
 * Call when costs were measured, or could not be. Recomputes what was spent until now. If the user has set
 * a limit and it is checked with an estimate, prints that, and marks the capture as degraded.
 */
void nps_overhead__check(struct nps_capture *c, struct nps_overhead *o);

/* Does so if costs have been measured since. */
void nps_overhead__poll(struct nps_capture *c, struct nps_overhead *o);

/* Time of the probes until now as a percentage of the job's CPU time; negative: not measured. */
double nps_overhead__percent(const struct nps_capture *c, const struct nps_overhead *o);

/* Print that as a line, and one with the costs that it is based on. */
void nps_overhead__print(const struct nps_capture *c, const struct nps_overhead *o, FILE *out);
void nps_overhead__print_costs(const struct nps_capture *c, const struct nps_overhead *o, FILE *out);

/* Compares the overhead with the limit, and prints a line for what is dropped. Call every second. */
void nps_overhead__every_second(struct nps_capture *c, struct nps_overhead *o);

/* Accounts for the remaining events. Call once the last record was read. */
void nps_overhead__settle(struct nps_capture *c, struct nps_overhead *o);

/* Opens and closes the windows of run statistics. Call each turn, and with ENDING once at the end. */
void nps_overhead__turn(struct nps_capture *c, struct nps_overhead *o, bool ending);

/* Adds "cost" to the session. */
void nps_overhead__describe(const struct nps_capture *c, const struct nps_overhead *o, cJSON *session);

/* Name of a stage in the session and on the terminal. */
const char *nps_shed__name(enum nps_shed what);

#endif
