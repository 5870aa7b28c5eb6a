/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one occurrence of each recorded event costs the job, in ns of its CPU
 * time. A uprobe's cost depends on how the kernel runs the instruction that
 * it replaced (enum nps_probe_class), so calls have a cost for each class.
 */
#ifndef NPS_COST_H
#define NPS_COST_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/probe_point.h"

struct nps_capability;

/* Negative: unknown, or this kernel has no such event. */
struct nps_cost {
	double call_ns[NPS_PROBE_CLASSES]; /* a call probed at entry and return */
	double mark_ns[NPS_PROBE_CLASSES]; /* a call probed at entry only */
	/* the share of BPF programs in them, by the kernel's count; 0: not counted */
	double call_program_ns, mark_program_ns;
	double syscall_ns; /* a system call with a record of its own */
	double sum_ns; /* one that is summed up */
	double fault_ns; /* a page fault */
	double switch_ns; /* a context switch, with the wake-up before it */
};

#define NPS_COST_MEMBERS (2 * NPS_PROBE_CLASSES + 6)

/* A member, and its name in files; I < NPS_COST_MEMBERS. */
double *nps_cost__member(struct nps_cost *cost, size_t i);
const char *nps_cost__name(size_t i);

/* Text for messages about probes of CLASS, such as "on a nop". Static. */
const char *nps_cost__where(enum nps_probe_class class);

/* Is it plausible? Each value is negative or below a second, and calls have a value. */
bool nps_cost__is_valid(const struct nps_cost *cost);

/*
 * Estimates costs until they are measured, from the kind of processor, whether it is virtual, and the
 * kernel. Rather too high than too low, so that reports do not understate them.
 */
void nps_cost__estimate(const struct nps_capability *cap, struct nps_cost *cost);

/* The same from the given facts; CPUINFO: contents of /proc/cpuinfo, VERSION: as LINUX_VERSION_CODE. */
void nps_cost__estimate_for(bool arm64, const char *cpuinfo, unsigned int version, struct nps_cost *cost);

#endif
