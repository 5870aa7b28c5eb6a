/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Known call chains with known shares of time: work -> mostly -> burn three times as long as work -> seldom
 * -> burn, and naps in between. Waits for a line on stdin, works MILLISECONDS of CPU time, prints what it did
 * by its own clocks. With a LIBRARY it also calls lib_burn() of it, mapped after that line. With `linger` one
 * thread sleeps on until the line `end`.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ULL
#define KEEP __attribute__((noinline, noclone, used))
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")

static volatile uint64_t sink;
static uint64_t mostly_ns, seldom_ns, nap_ns, naps;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

KEEP uint64_t burn(uint64_t ns)
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID), at = begin;

	while (at - begin < ns) {
		for (int i = 0; i < 100000; i++)
			sink += (uint64_t)i;
		at = now(CLOCK_THREAD_CPUTIME_ID);
	}
	return at - begin;
}

KEEP void mostly(void)
{
	mostly_ns += burn(15 * MS);
	NO_TAIL_CALL;
}

KEEP void seldom(void)
{
	seldom_ns += burn(5 * MS);
	NO_TAIL_CALL;
}

KEEP void nap(void)
{
	const struct timespec t = { .tv_nsec = 8 * MS };
	uint64_t begin = now(CLOCK_MONOTONIC);

	nanosleep(&t, NULL);
	nap_ns += now(CLOCK_MONOTONIC) - begin;
	naps++;
}

KEEP void work(uint64_t ns, uint64_t (*library)(uint64_t))
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID), in_library = 0;

	while (now(CLOCK_THREAD_CPUTIME_ID) - begin < ns) {
		mostly();
		seldom();
		if (library)
			in_library += library(10 * MS);
		nap();
	}
	printf("library_ns %llu\n", (unsigned long long)in_library);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

KEEP void *waits_for_a_lock(void *arg)
{
	prctl(PR_SET_NAME, "wait<&;\"er");
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

static uint64_t cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static uint64_t (*load(const char *path))(uint64_t)
{
	void *handle = dlopen(path, RTLD_NOW);
	uint64_t (*f)(uint64_t) = NULL;

	if (handle)
		*(void **)&f = dlsym(handle, "lib_burn");
	if (!f)
		fprintf(stderr, "stacks_job: %s\n", dlerror());
	return f;
}

static void wait_for_line(void)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		exit(9);
}

int main(int argc, char **argv)
{
	uint64_t ns = argc > 1 ? strtoull(argv[1], NULL, 10) * MS : 1000 * MS, before, began;
	const char *library = argc > 2 && argv[2][0] == '/' ? argv[2] : NULL;
	bool linger = argc > 2 && !strcmp(argv[argc - 1], "linger");
	pthread_t waiter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready %d\n", getpid());
	wait_for_line();
	before = cpu_ns();
	began = now(CLOCK_MONOTONIC);
	pthread_mutex_lock(&lock);
	if (linger && pthread_create(&waiter, NULL, waits_for_a_lock, NULL))
		return 1;
	work(ns, library ? load(library) : NULL);
	printf("mostly_ns %llu\nseldom_ns %llu\nnap_ns %llu\nnaps %llu\ncpu_ns %llu\nbegan %llu\n",
	       (unsigned long long)mostly_ns, (unsigned long long)seldom_ns, (unsigned long long)nap_ns,
	       (unsigned long long)naps, (unsigned long long)(cpu_ns() - before), (unsigned long long)began);
	printf("done\n");
	if (linger)
		wait_for_line();
	pthread_mutex_unlock(&lock);
	if (linger)
		pthread_join(waiter, NULL);
	return 0;
}
