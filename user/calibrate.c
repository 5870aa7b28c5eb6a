/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate.h"

#include <bpf/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clocks.h"

#define CALLS 2000
#define ROUNDS 3

static void *same(void *arg)
{
	return arg;
}

/* Through a pointer that the compiler must not see through. */
static void *(*volatile inner)(void *) = same;

/* The function that is probed. It keeps its argument across a call, so it begins with a push like most. */
__attribute__((noinline)) void *nps_calibration_target(void *arg)
{
	return inner(arg) == arg ? arg : NULL;
}

static void call_target(void)
{
	for (int i = 0; i < CALLS; i++)
		nps_calibration_target(NULL);
}

static void call_kernel(void)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
}

static void yield(void)
{
	for (int i = 0; i < CALLS; i++)
		sched_yield();
}

/* A page fault each. */
static void touch(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, CALLS * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return;
	madvise(pages, CALLS * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < CALLS; i++)
		((volatile char *)pages)[i * page] = 1;
	munmap(pages, CALLS * page);
}

/* ns for one turn of the loop, the best of some rounds. */
static double time_of(void (*loop)(void))
{
	double best = 0;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin = nps_now(CLOCK_MONOTONIC);
		double ns;

		loop();
		ns = (double)(nps_now(CLOCK_MONOTONIC) - begin) / CALLS;
		if (i == 0 || ns < best)
			best = ns;
	}
	return best;
}

static atomic_bool stop_partner;

static void *partner(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop_partner))
		sched_yield();
	return NULL;
}

/* Two threads on one CPU that yield to each other: each turn is one call and one switch. */
static double time_of_switches(struct nps_kernel_side *k, double syscall_ns)
{
	cpu_set_t old, one;
	pthread_t thread;
	double without, with;

	if (sched_getaffinity(0, sizeof(old), &old))
		return -1;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	atomic_store(&stop_partner, false);
	if (pthread_create(&thread, NULL, partner, NULL)) {
		sched_setaffinity(0, sizeof(old), &old);
		return -1;
	}
	without = time_of(yield);
	nps_kernel_side__add_target(k, getpid(), NPS_TARGET_WATCH | NPS_TARGET_OSRT);
	with = time_of(yield);
	nps_kernel_side__del_target(k, getpid());
	atomic_store(&stop_partner, true);
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(old), &old);
	/* Each turn lets the partner run once: two calls and two switches. */
	with = (with - without) / 2 - syscall_ns;
	return with > 0 ? with : 0;
}

/* Mean time of the uprobe programs for one turn of the loop, by the kernel's own statistics; 0 if it keeps none. */
static double program_time(struct nps_kernel_side *k)
{
	uint64_t before, after;
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (fd < 0)
		return 0;
	before = nps_kernel_side__program_ns(k);
	call_target();
	after = nps_kernel_side__program_ns(k);
	close(fd);
	return (double)(after - before) / CALLS;
}

void nps_calibrate(struct nps_kernel_side *k, struct nps_probes *p, bool osrt, struct nps_cost *cost)
{
	double without, fault;

	cost->probe_program_ns = cost->mark_program_ns = 0;
	cost->probe_ns = cost->mark_ns = cost->syscall_ns = cost->switch_ns = cost->fault_ns = -1;
	without = time_of(call_target);
	if (nps_kernel_side__add_target(k, getpid(), NPS_TARGET_WATCH))
		return;
	if (!nps_probes__calibrate(p, "nps_calibration_target", true)) {
		cost->probe_ns = time_of(call_target) - without;
		cost->probe_program_ns = program_time(k);
	}
	nps_probes__uncalibrate(p);
	if (!nps_probes__calibrate(p, "nps_calibration_target", false)) {
		cost->mark_ns = time_of(call_target) - without;
		cost->mark_program_ns = program_time(k);
	}
	nps_probes__uncalibrate(p);
	if (osrt) {
		nps_kernel_side__del_target(k, getpid());
		without = time_of(call_kernel);
		fault = time_of(touch);
		nps_kernel_side__add_target(k, getpid(), NPS_TARGET_WATCH | NPS_TARGET_OSRT);
		cost->syscall_ns = time_of(call_kernel) - without;
		fault = time_of(touch) - fault;
		cost->fault_ns = fault > 0 ? fault : 0;
		nps_kernel_side__del_target(k, getpid());
		cost->switch_ns = time_of_switches(k, cost->syscall_ns);
	}
	nps_kernel_side__del_target(k, getpid());
}
