/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What watching costs the job, while it is watched: occurrences counted by the kernel side times what one costs on this
 * machine (cost_source.h), beside what the kernel itself says the BPF programs took. And what is given up, in a fixed order, when that
 * is more than the user allows.
 */
#ifndef NPS_OVERHEAD_H
#define NPS_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "cost_account.h"

struct nps_capture;

#define NPS_OVERHEAD_PROGRAMS 48

struct nps_overhead {
	struct nps_account account;
	struct {
		uint64_t mono;
		double percent; /* of the job's CPU time, in the interval before */
		enum nps_shed what;
	} shed[NPS_SHED_STAGES];
	unsigned int n_shed;
	/* The kernel's run statistics, taken now and then: they are not free either. */
	struct nps_bpf_stats *stats; /* NULL: they cannot be had */
	bool stats_requested;
	int stats_fd; /* -1: not being taken */
	uint64_t stats_at, stats_gap; /* monotonic ns; ns */
	struct {
		char name[32];
		uint64_t runs, ns; /* in all windows */
		uint64_t base_runs, base_ns; /* when the window began */
	} programs[NPS_OVERHEAD_PROGRAMS];
	unsigned int n_programs;
};

/* Call once, when the capture begins. */
void nps_overhead__begin(struct nps_overhead *o);

/* Call once after the last fork(2) of ours; starts a thread. */
void nps_overhead__start(struct nps_overhead *o);
void nps_overhead__free(struct nps_overhead *o);

/*
 * Call when costs were measured, or could not be. What was spent until now is told at them; where a limit that was asked for
 * is held by an estimate it says so, and marks the capture as degraded.
 */
void nps_overhead__check(struct nps_capture *c, struct nps_overhead *o);

/* Costs may have been measured by now: if so, checks. */
void nps_overhead__look(struct nps_capture *c, struct nps_overhead *o);

/* Time the probes have taken so far as a share of the CPU time that the job used, percent; negative when it could not be measured. */
double nps_overhead__percent(const struct nps_capture *c, const struct nps_overhead *o);

/* The same for people, a line; and one of what it was reckoned by. */
void nps_overhead__print(const struct nps_capture *c, const struct nps_overhead *o, FILE *out);
void nps_overhead__print_costs(const struct nps_capture *c, FILE *out);

/* Holds the overhead against the limit; a line for what is given up. Call each second. */
void nps_overhead__every_second(struct nps_capture *c, struct nps_overhead *o);

/* Accounts for what came since then. Call when the last record was read. */
void nps_overhead__settle(struct nps_capture *c, struct nps_overhead *o);

/* Opens and closes the windows of run statistics. Call each turn, and with ENDING once at the end. */
void nps_overhead__turn(struct nps_capture *c, struct nps_overhead *o, bool ending);

/* Adds "cost" to the session. */
void nps_overhead__describe(const struct nps_capture *c, const struct nps_overhead *o, cJSON *session);

/* What a stage is called in the session and on the terminal. */
const char *nps_shed__name(enum nps_shed what);

#endif
