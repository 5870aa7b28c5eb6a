/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate.h"

#include <bpf/bpf.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clocks.h"

#define CALLS 2000 /* whose records a ring of 512 KB holds */
#define THROWS 500 /* of a ball: eight records each */
#define ROUNDS 5
#define MOST_ROUNDS 50 /* where noise is larger than what is measured */

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

/* ns of CPU time for one turn of the loop; or LEAST, where that was less. */
static double time_once(void (*loop)(void), double least)
{
	uint64_t begin = nps_now(CLOCK_PROCESS_CPUTIME_ID);
	double ns;

	loop();
	ns = (double)(nps_now(CLOCK_PROCESS_CPUTIME_ID) - begin) / CALLS;
	return ns < least ? ns : least;
}

/* The best of some rounds: what else runs here is not in it. */
static double time_of(struct nps_kernel_side *k, void (*loop)(void))
{
	double best = INFINITY;

	for (int i = 0; i < ROUNDS; i++) {
		nps_kernel_side__discard(k); /* what has no place in a ring is cheaper */
		best = time_once(loop, best);
	}
	return best;
}

/*
 * What watching adds to one turn of the loop, ns: with and without in turns, so that what else the machine does for a
 * while falls on both. 0 if it is less than the noise, negative if we cannot be watched.
 */
static double time_added(struct nps_kernel_side *k, void (*loop)(void))
{
	double without = INFINITY, with = INFINITY;

	for (int i = 0; i < ROUNDS || (i < MOST_ROUNDS && with <= without); i++) {
		without = time_once(loop, without);
		nps_kernel_side__discard(k);
		if (nps_kernel_side__add_target(k, getpid(), NPS_TARGET_WATCH | NPS_TARGET_OSRT))
			return -1;
		with = time_once(loop, with);
		nps_kernel_side__del_target(k, getpid());
	}
	return with > without ? with - without : 0;
}

/* The same call with a record each time, and summed up. */
static void time_of_syscalls(struct nps_kernel_side *k, struct nps_cost *cost)
{
	uint64_t threshold = nps_kernel_side__threshold(k);

	nps_kernel_side__set_threshold(k, 0);
	cost->syscall_ns = time_added(k, call_kernel);
	nps_kernel_side__set_threshold(k, NPS_LONGEST_SUMMED);
	cost->sum_ns = time_added(k, call_kernel);
	nps_kernel_side__set_threshold(k, threshold);
}

/* A ball that two threads on one CPU throw to each other: to have it back takes two switches, two wake-ups and four calls. */
static int ball[2]; /* eventfds */
static uint64_t stop_word;

static void *partner(void *arg)
{
	uint64_t one = 1, got;

	(void)arg;
	while (read(ball[0], &got, sizeof(got)) == sizeof(got) &&
	       !__atomic_load_n(&stop_word, __ATOMIC_ACQUIRE))
		if (write(ball[1], &one, sizeof(one)) != sizeof(one))
			break;
	return NULL;
}

static bool throw_ball(void)
{
	uint64_t one = 1;

	return write(ball[0], &one, sizeof(one)) == sizeof(one);
}

static void play(void)
{
	uint64_t got;

	for (int i = 0; i < THROWS; i++)
		if (!throw_ball() || read(ball[1], &got, sizeof(got)) != sizeof(got))
			return;
}

/* Two threads that share a CPU, with and without being watched. CALL_NS: what each system call takes. */
static double time_of_play(struct nps_kernel_side *k, double call_ns)
{
	pthread_t thread;
	double ns = 0, added = 0;

	__atomic_store_n(&stop_word, 0, __ATOMIC_RELEASE);
	if (call_ns < 0 || pthread_create(&thread, NULL, partner, NULL))
		return -1;
	/* On a busy machine noise can be larger than the difference. */
	for (int i = 0; i < ROUNDS && ns <= 0 && added >= 0; i++) {
		added = time_added(k, play) * CALLS / THROWS;
		ns = added / 2 - 2 * call_ns;
	}
	__atomic_store_n(&stop_word, 1, __ATOMIC_RELEASE);
	if (throw_ball())
		pthread_join(thread, NULL);
	else
		pthread_detach(thread);
	return added < 0 ? -1 : ns > 0 ? ns : 0;
}

static double time_of_switches(struct nps_kernel_side *k, double call_ns)
{
	cpu_set_t old, one;
	double ns = -1;

	if (sched_getaffinity(0, sizeof(old), &old))
		return -1;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ball[0] = eventfd(0, EFD_CLOEXEC);
	ball[1] = eventfd(0, EFD_CLOEXEC);
	if (ball[0] >= 0 && ball[1] >= 0 && !sched_setaffinity(0, sizeof(one), &one)) {
		ns = time_of_play(k, call_ns);
		sched_setaffinity(0, sizeof(old), &old);
	}
	for (int i = 0; i < 2; i++)
		if (ball[i] >= 0)
			close(ball[i]);
	return ns;
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
	double without;

	cost->probe_program_ns = cost->mark_program_ns = 0;
	cost->probe_ns = cost->mark_ns = cost->syscall_ns = cost->sum_ns = cost->switch_ns = cost->fault_ns =
		-1;
	without = time_of(k, call_target);
	if (nps_kernel_side__add_target(k, getpid(), NPS_TARGET_WATCH))
		return;
	if (!nps_probes__calibrate(p, "nps_calibration_target", true)) {
		cost->probe_ns = time_of(k, call_target) - without;
		cost->probe_program_ns = program_time(k);
	}
	nps_probes__uncalibrate(p);
	if (!nps_probes__calibrate(p, "nps_calibration_target", false)) {
		cost->mark_ns = time_of(k, call_target) - without;
		cost->mark_program_ns = program_time(k);
	}
	nps_probes__uncalibrate(p);
	if (osrt) {
		nps_kernel_side__del_target(k, getpid());
		time_of_syscalls(k, cost);
		cost->fault_ns = time_added(k, touch);
		cost->switch_ns =
			time_of_switches(k, nps_kernel_side__threshold(k) ? cost->sum_ns : cost->syscall_ns);
	}
	nps_kernel_side__del_target(k, getpid());
	nps_kernel_side__discard(k);
}
