/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/cost.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "attach/capability.h"

#define MOST_NS 1e9

#define MEMBER(name, member)                                                                                 \
	{                                                                                                    \
		name, offsetof(struct nps_cost, member)                                                      \
	}

static const struct {
	const char *name;
	size_t offset;
} members[NPS_COST_MEMBERS] = {
	MEMBER("call_emulated", call_ns[NPS_PROBE_EMULATED]),
	MEMBER("call_nop", call_ns[NPS_PROBE_NOP]),
	MEMBER("call_stepped", call_ns[NPS_PROBE_STEPPED]),
	MEMBER("mark_emulated", mark_ns[NPS_PROBE_EMULATED]),
	MEMBER("mark_nop", mark_ns[NPS_PROBE_NOP]),
	MEMBER("mark_stepped", mark_ns[NPS_PROBE_STEPPED]),
	MEMBER("call_program", call_program_ns),
	MEMBER("mark_program", mark_program_ns),
	MEMBER("syscall", syscall_ns),
	MEMBER("sum", sum_ns),
	MEMBER("fault", fault_ns),
	MEMBER("switch", switch_ns),
};

_Static_assert(sizeof(struct nps_cost) == NPS_COST_MEMBERS * sizeof(double), "every member has a name");

double *nps_cost__member(struct nps_cost *cost, size_t i)
{
	return (double *)(void *)((char *)cost + members[i].offset);
}

const char *nps_cost__name(size_t i)
{
	return members[i].name;
}

const char *nps_cost__where(enum nps_probe_class class)
{
	/* A nop of any length, because the class depends on the processor. */
	static const char *const where[NPS_PROBE_CLASSES] = {
		[NPS_PROBE_EMULATED] = "on an emulated instruction",
		[NPS_PROBE_NOP] = "on a nop",
		[NPS_PROBE_STEPPED] = "on a single-stepped instruction",
	};

	return where[class];
}

bool nps_cost__is_valid(const struct nps_cost *cost)
{
	struct nps_cost copy = *cost;

	for (size_t i = 0; i < NPS_COST_MEMBERS; i++) {
		double ns = *nps_cost__member(&copy, i);

		if (!isfinite(ns) || ns > MOST_NS)
			return false;
	}
	for (int class = 0; class < NPS_PROBE_CLASSES; class ++)
		if (cost->call_ns[class] < 0 || cost->mark_ns[class] < 0)
			return false;
	return cost->call_program_ns >= 0 && cost->mark_program_ns >= 0;
}

/* Parts of a call's cost, ns: trap at the entry by class, trap of the return. The programs are below. */
struct traps {
	double entry[NPS_PROBE_CLASSES], leave;
};

#define ENTRY_PROGRAM 300
#define RETURN_PROGRAM 300

void nps_cost__estimate_for(bool arm64, const char *cpuinfo, unsigned int version, struct nps_cost *cost)
{
	/* The flag is x86-64's: arm64 processors do not show that they are virtual. */
	static const struct traps bare = { { 1200, 400, 4000 }, 700 },
				  virtual = { { 5500, 1500, 20000 }, 2000 },
				  arm = { { 1500, 4000, 4000 }, 1500 };
	bool is_virtual = !arm64 && strstr(cpuinfo, " hypervisor");
	const struct traps *t = arm64 ? &arm : is_virtual ? &virtual : &bare;

	for (int class = 0; class < NPS_PROBE_CLASSES; class ++) {
		double trap =
			t->entry[nps_probe_class__is_stepped(class, version) ? NPS_PROBE_STEPPED : class];

		cost->mark_ns[class] = trap + ENTRY_PROGRAM;
		cost->call_ns[class] = trap + ENTRY_PROGRAM + t->leave + RETURN_PROGRAM;
	}
	/* The kernel's count of the programs alone does not improve an estimate. */
	cost->call_program_ns = cost->mark_program_ns = 0;
	cost->syscall_ns = 400;
	cost->sum_ns = 250;
	cost->fault_ns = 300;
	cost->switch_ns = 1200;
}

void nps_cost__estimate(const struct nps_capability *cap, struct nps_cost *cost)
{
	static char cpuinfo[16384]; /* the first processors are enough */
	struct utsname u = { 0 };
	FILE *f = fopen("/proc/cpuinfo", "re");
	size_t n = f ? fread(cpuinfo, 1, sizeof(cpuinfo) - 1, f) : 0;
	bool arm64;

	if (f)
		fclose(f);
	cpuinfo[n] = '\0';
	arm64 = !uname(&u) && !strcmp(u.machine, "aarch64");
	nps_cost__estimate_for(arm64, cpuinfo, nps_kernel_version(), cost);
	if (cap->uprobe == NPS_UPROBE_NONE)
		for (int class = 0; class < NPS_PROBE_CLASSES; class ++)
			cost->call_ns[class] = cost->mark_ns[class] = -1;
}
