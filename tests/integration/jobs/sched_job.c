// SPDX-License-Identifier: BSD-2-Clause
/*
 * A job whose host time is known: it spins, waits for a lock that another thread holds, reads a file in small
 * pieces, sleeps, and shares one CPU with a rival. Prints "ready PID", waits for a line, works, prints facts
 * as "NAME PID VALUE" and, for each of its threads, "thread NAME TID CPU_NS VOLUNTARY INVOLUNTARY"; then it
 * waits for another line, in case the capture is to end first. With `poll` it does nothing but spin on a CPU
 * of its own.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 300000000ULL
#define HOLD_NS 40000000L
#define HOLDS 5
#define NAP_NS 25000000L
#define NAPS 4
#define READS 20000
#define RIVAL_NS 250000000ULL
#define STEADY_NS 200000000ULL
#define POLL_NS 60000000000ULL /* more than a busy machine takes for a capture */

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void fact(const char *name, uint64_t value)
{
	printf("%s %d %llu\n", name, getpid(), (unsigned long long)value);
}

static void thread_facts(const char *name)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	printf("thread %s %ld %llu %ld %ld\n", name, syscall(SYS_gettid),
	       (unsigned long long)now(CLOCK_THREAD_CPUTIME_ID), r.ru_nvcsw, r.ru_nivcsw);
}

static void nap(long ns)
{
	struct timespec ts = { .tv_nsec = ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void spin(uint64_t ns)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 100000; i++)
			;
}

/* A lock of ours, so that every wait is one call: 0 free, 1 held. */
static _Atomic uint32_t lock;
static _Atomic int round_held;
static uint64_t joined;

static void *holder(void *arg)
{
	prctl(PR_SET_NAME, "holder");
	for (int i = 0; i < HOLDS; i++) {
		while (atomic_load(&round_held) != 2 * i)
			nap(1000000);
		atomic_store(&lock, 1);
		atomic_store(&round_held, 2 * i + 1);
		nap(HOLD_NS);
		atomic_store(&lock, 0);
		syscall(SYS_futex, &lock, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
	thread_facts("holder");
	return arg;
}

/* That is a wait for a lock, too: a futex. */
static void join(pthread_t t)
{
	uint64_t began = now(CLOCK_MONOTONIC);

	pthread_join(t, NULL);
	joined += now(CLOCK_MONOTONIC) - began;
}

static void wait_for_lock(void)
{
	uint64_t waited = 0;
	pthread_t t;

	if (pthread_create(&t, NULL, holder, NULL))
		abort();
	for (int i = 0; i < HOLDS; i++) {
		uint64_t began;

		while (atomic_load(&round_held) != 2 * i + 1)
			;
		began = now(CLOCK_MONOTONIC);
		while (atomic_load(&lock))
			syscall(SYS_futex, &lock, FUTEX_WAIT, 1, NULL, NULL, 0);
		waited += now(CLOCK_MONOTONIC) - began;
		atomic_store(&round_held, 2 * i + 2);
	}
	fact("lock_ns", waited);
	fact("held_ns", HOLDS * HOLD_NS);
	join(t);
}

static void read_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	uint64_t began = now(CLOCK_THREAD_CPUTIME_ID);
	char buf[4096];

	for (int i = 0; i < READS; i++)
		if (pread(fd, buf, sizeof(buf), 0) <= 0)
			abort();
	fact("read_cpu_ns", now(CLOCK_THREAD_CPUTIME_ID) - began);
	close(fd);
}

static void *rival(void *arg)
{
	cpu_set_t one;

	prctl(PR_SET_NAME, "rival");
	CPU_ZERO(&one);
	CPU_SET(*(int *)arg, &one);
	sched_setaffinity(0, sizeof(one), &one);
	spin(RIVAL_NS);
	thread_facts("rival");
	return NULL;
}

/* Nobody takes its CPU from it, so that its clock and the scheduler's records have nothing to disagree on. */
static void *steady(void *arg)
{
	struct sched_param prio = { .sched_priority = 1 };

	prctl(PR_SET_NAME, "steady");
	if (sched_setscheduler(0, SCHED_FIFO, &prio))
		abort();
	spin(STEADY_NS);
	thread_facts("steady");
	return arg;
}

static void run_steadily(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, steady, NULL))
		abort();
	join(t);
}

/* Two threads that spin on one CPU: each takes it from the other. */
static void share_a_cpu(void)
{
	uint64_t wall, cpu;
	cpu_set_t old, one;
	pthread_t t;
	int which;

	sched_getaffinity(0, sizeof(old), &old);
	which = sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET(which, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pthread_create(&t, NULL, rival, &which))
		abort();
	wall = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_THREAD_CPUTIME_ID);
	spin(RIVAL_NS);
	wall = now(CLOCK_MONOTONIC) - wall;
	cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	fact("shared_wait_ns", wall - cpu);
	join(t);
	sched_setaffinity(0, sizeof(old), &old);
}

/* Moves from CPU to CPU as often as it reports, if there is more than one. */
static void move(void)
{
	cpu_set_t old, one;
	int moves = 0;

	sched_getaffinity(0, sizeof(old), &old);
	for (int round = 0; round < 5; round++) {
		for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&old) > 1; cpu++) {
			if (!CPU_ISSET(cpu, &old) || cpu == sched_getcpu())
				continue;
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			if (!sched_setaffinity(0, sizeof(one), &one))
				moves++;
		}
	}
	sched_setaffinity(0, sizeof(old), &old);
	fact("moves", moves);
}

/* Holds a CPU for itself, as a thread does that polls. */
static int poll_alone(void)
{
	struct sched_param prio = { .sched_priority = 1 };
	uint64_t end = now(CLOCK_MONOTONIC) + POLL_NS;
	cpu_set_t old, one;

	sched_getaffinity(0, sizeof(old), &old);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &old)) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
		}
	}
	if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_FIFO, &prio))
		return 1;
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (now(CLOCK_MONOTONIC) < end)
		;
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t began;
	char line[16];

	if (argc > 1 && !strcmp(argv[1], "poll"))
		return poll_alone();
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	fact("began_ns", now(CLOCK_MONOTONIC));
	began = now(CLOCK_THREAD_CPUTIME_ID);
	spin(SPIN_NS);
	fact("spin_ns", now(CLOCK_THREAD_CPUTIME_ID) - began);
	wait_for_lock();
	read_file();
	began = now(CLOCK_MONOTONIC);
	for (int i = 0; i < NAPS; i++)
		nap(NAP_NS);
	fact("nap_ns", now(CLOCK_MONOTONIC) - began);
	fact("nap_least_ns", NAPS * NAP_NS);
	share_a_cpu();
	run_steadily();
	move();
	fact("join_ns", joined);
	thread_facts("main");
	printf("done %d\n", getpid());
	fflush(stdout);
	/* Busy until the capture has ended: its last stretch is an open one. */
	while (!access("/proc/self/exe", F_OK) && fcntl(0, F_SETFL, O_NONBLOCK) == 0 &&
	       read(0, line, sizeof(line)) < 0)
		for (volatile int i = 0; i < 1000000; i++)
			;
	return 0;
}
