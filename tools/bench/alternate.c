/* SPDX-License-Identifier: BSD-2-Clause */
#include "alternate.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define WORDS (256 << 10 >> 3)
#define SAMPLES (1 << 16)
#define SAMPLE_NS 10000000ULL
#define AFTER_STEPS 2000 /* which find the caches as the call leaves them */
#define TIMES 4096 /* of calls since the sample before */

static volatile uint64_t memory[WORDS];

static uint64_t compute(uint64_t state, long steps)
{
	for (long i = 0; i < steps; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memory[state % WORDS] += state;
	}
	return state;
}

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Written by a mapping: a system call would be watched. */
static struct sample *map_samples(const char *path)
{
	size_t size = SAMPLES * sizeof(struct sample);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* When the input ends, so does the process. */
static void *wait_for_end(void *arg)
{
	char word;

	while (read(STDIN_FILENO, &word, 1) > 0)
		;
	_exit(0);
	return arg;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void collect_samples(const struct alternation *a, struct sample *samples)
{
	struct sample total = { .monotonic_ns = now(CLOCK_MONOTONIC) };
	uint64_t state = 88172645463325252ULL, due = total.monotonic_ns, next = due, before, after;
	static uint64_t times[TIMES];
	size_t timed = 0;

	for (size_t collected = 0; collected < SAMPLES;) {
		state = compute(state, a->steps - AFTER_STEPS);
		before = now(CLOCK_MONOTONIC);
		if (collected % 2) {
			a->probed();
			total.probed_calls++;
		} else {
			a->plain();
		}
		total.calls++;
		state = compute(state, AFTER_STEPS);
		after = now(CLOCK_MONOTONIC);
		if (timed < TIMES)
			times[timed++] = after - before;
		if (after >= next) {
			total.cpu_ns = now(CLOCK_THREAD_CPUTIME_ID);
			total.monotonic_ns = after;
			qsort(times, timed, sizeof(*times), compare);
			total.near_ns = times[timed / 2];
			timed = 0;
			samples[collected++] = total;
			next = after + SAMPLE_NS;
		}
		if (!a->gap_ns)
			continue;
		due = due + a->gap_ns < after ? after : due + a->gap_ns;
		sleep_until(due);
	}
}

int alternate(const struct alternation *a)
{
	struct sample *samples = map_samples(a->samples);
	pthread_t thread;

	if (!samples || prctl(PR_SET_TIMERSLACK, 1) || pthread_create(&thread, NULL, wait_for_end, NULL))
		return -1;
	collect_samples(a, samples);
	fprintf(stderr, "no room for more samples: %d of 10 ms\n", SAMPLES);
	return -1;
}
