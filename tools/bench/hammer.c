/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes system calls at a steady rate: `hammer RATE SECONDS`, RATE in calls a
 * second over all threads (one a CPU), 0 = as fast as they go. Prints how many it made.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BURST 64

static double rate, seconds;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *hammer(void *arg)
{
	double begin = now(), t = begin;
	uint64_t calls = 0;

	while (t - begin < seconds) {
		if (rate > 0 && (double)calls > rate * (t - begin)) {
			usleep(200);
		} else {
			for (int i = 0; i < BURST; i++)
				syscall(SYS_getppid);
			calls += BURST;
		}
		t = now();
	}
	*(uint64_t *)arg = calls;
	return NULL;
}

int main(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t made[256] = { 0 }, total = 0;
	pthread_t threads[256];

	if (argc != 3) {
		fprintf(stderr, "usage: hammer RATE SECONDS\n");
		return 2;
	}
	if (cpus > 256)
		cpus = 256;
	rate = atof(argv[1]) / (double)cpus;
	seconds = atof(argv[2]);
	for (long i = 0; i < cpus; i++)
		if (pthread_create(&threads[i], NULL, hammer, &made[i]))
			return 1;
	for (long i = 0; i < cpus; i++) {
		pthread_join(threads[i], NULL);
		total += made[i];
	}
	printf("%llu\n", (unsigned long long)total);
	return 0;
}
