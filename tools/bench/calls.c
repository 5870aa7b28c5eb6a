/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `calls LIBRARY KIND RATE WORK SAMPLES`: calls of a library's function, each after WORK steps of computing over 256 KB, until
 * the standard input ends. Every other 10 ms step_here, which has no probe, is called in its place. RATE: of calls a second, kept
 * by sleeping in between; 0: as fast as computing lets it. KIND: push, nop5, sub, by the function's first instruction, or mixed:
 * each in turn. Into the file SAMPLES, each 10 ms: what the process did until then, as struct sample.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define WORDS (256 << 10 >> 3)
#define SAMPLES (1 << 16)
#define SAMPLE_NS 10000000ULL

struct sample {
	uint64_t monotonic_ns, cpu_ns, calls, probed_calls;
	uint64_t
		near_ns; /* median, since the sample before, of a call and AFTER_STEPS of computing: what an interruption takes is not in it */
};

#define AFTER_STEPS 2000 /* which find the caches as the call leaves them */
#define TIMES 4096 /* of calls since the sample before */

static uint64_t memory[WORDS];

typedef int (*function)(void *);

static const struct {
	const char *kind, *function;
} kinds[] = {
	{ "push", "aclrtFree" },
	{ "nop5", "aclrtSynchronizeDevice" },
	{ "sub", "aclrtSynchronizeStream" },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* Functions that are called in turn; how many. */
static size_t find(void *library, const char *kind, function found[KINDS])
{
	size_t n = 0;

	for (size_t i = 0; i < KINDS; i++) {
		void *f = dlsym(library, kinds[i].function);

		if (f && (!strcmp(kind, kinds[i].kind) || !strcmp(kind, "mixed")))
			memcpy(&found[n++], &f, sizeof(f));
	}
	return n;
}

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

static void run(const function found[KINDS], size_t n, function plain, uint64_t gap, long work,
		struct sample *samples)
{
	struct sample total = { .monotonic_ns = now(CLOCK_MONOTONIC) };
	uint64_t state = 88172645463325252ULL, due = total.monotonic_ns, next = due, before, after;
	static uint64_t times[TIMES];
	size_t timed = 0;

	for (size_t taken = 0; taken < SAMPLES;) {
		state = compute(state, work - AFTER_STEPS);
		before = now(CLOCK_MONOTONIC);
		if (taken % 2)
			found[total.probed_calls++ % n](NULL);
		else
			plain(NULL);
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
			samples[taken++] = total;
			next = after + SAMPLE_NS;
		}
		if (!gap)
			continue;
		due = due + gap < after ? after : due + gap;
		sleep_until(due);
	}
}

int main(int argc, char **argv)
{
	function found[KINDS] = { 0 }, plain;
	struct sample *samples;
	pthread_t thread;
	void *library, *at;
	long rate;
	size_t n;

	if (argc != 6)
		return 2;
	library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	n = find(library, argv[2], found);
	at = dlsym(library, "step_here");
	memcpy(&plain, &at, sizeof(plain));
	rate = strtol(argv[3], NULL, 10);
	samples = map_samples(argv[5]);
	if (!n || !plain || rate < 0 || !samples || prctl(PR_SET_TIMERSLACK, 1) ||
	    pthread_create(&thread, NULL, wait_for_end, NULL))
		return 2;
	run(found, n, plain, rate ? 1000000000ULL / (uint64_t)rate : 0, strtol(argv[4], NULL, 10), samples);
	return memory[0] == 1; /* so that it is computed */
}
