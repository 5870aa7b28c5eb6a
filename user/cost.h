/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one occurrence of what is recorded costs the job, ns of its CPU time. A uprobe costs by how the kernel runs the
 * instruction that it replaced (enum nps_probe_class), so calls have a cost for each class.
 */
#ifndef NPS_COST_H
#define NPS_COST_H

#include <stdbool.h>
#include <stddef.h>

#include "probe_point.h"

struct nps_capability;

/* Negative: it is not known, or there is no such thing on this kernel. */
struct nps_cost {
	double call_ns[NPS_PROBE_CLASSES]; /* a call probed at entry and return */
	double mark_ns[NPS_PROBE_CLASSES]; /* a call probed at entry only */
	double call_program_ns,
		mark_program_ns; /* what of them the BPF programs took, as the kernel counts it; 0: it does not */
	double syscall_ns; /* a system call with a record of its own */
	double sum_ns; /* one that is summed up */
	double fault_ns; /* a page fault */
	double switch_ns; /* a context switch, with the wake-up before it */
};

#define NPS_COST_MEMBERS (2 * NPS_PROBE_CLASSES + 6)

/* A member, and what it is called in files; I < NPS_COST_MEMBERS. */
double *nps_cost__member(struct nps_cost *cost, size_t i);
const char *nps_cost__name(size_t i);

/* Where a probe of CLASS stands, as messages have it behind what it costs: "on a nop". It has no owner. */
const char *nps_cost__where(enum nps_probe_class class);

/* Can it have been measured? Each value is negative or below a second; calls are measured. */
bool nps_cost__is_valid(const struct nps_cost *cost);

/*
 * What is taken until it is measured: by the kind of processor, whether it is a virtual one, and the kernel. On the
 * high side: better to report too much than too little.
 */
void nps_cost__estimate(const struct nps_capability *cap, struct nps_cost *cost);

/* The same from what is known; CPUINFO as /proc/cpuinfo, VERSION as LINUX_VERSION_CODE. */
void nps_cost__estimate_for(bool arm64, const char *cpuinfo, unsigned int version, struct nps_cost *cost);

#endif
