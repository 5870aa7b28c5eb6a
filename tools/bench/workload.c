/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work for the operating system, of a fixed amount: `workload calls N` system calls, `workload locks N` turns of four
 * threads that fight for a mutex, `workload copy N` MB from one file to another in the current directory. Prints the nanoseconds it took.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define BLOCK (64 << 10)

static long amount;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t shared;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int calls(void)
{
	for (long i = 0; i < amount; i++)
		syscall(SYS_getppid);
	return 0;
}

static void *fight(void *arg)
{
	for (long i = 0; i < amount / THREADS; i++) {
		pthread_mutex_lock(&mutex);
		for (int k = 0; k < 200; k++)
			shared++;
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

static int locks(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, fight, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int copy(void)
{
	static char block[BLOCK];
	int from = open("workload.in", O_RDWR | O_CREAT | O_TRUNC, 0600);
	int to = open("workload.out", O_RDWR | O_CREAT | O_TRUNC, 0600);
	int bad = from < 0 || to < 0;

	memset(block, 'x', sizeof(block));
	bad = bad || write(from, block, sizeof(block)) != sizeof(block);
	for (long i = 0; !bad && i < amount * ((1 << 20) / BLOCK); i++)
		bad = pread(from, block, sizeof(block), 0) != sizeof(block) ||
		      pwrite(to, block, sizeof(block), (i % 256) * BLOCK) != sizeof(block);
	unlink("workload.in");
	unlink("workload.out");
	return bad;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} kinds[] = { { "calls", calls }, { "locks", locks }, { "copy", copy } };

	for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(*kinds); i++) {
		uint64_t begin = now();

		amount = atol(argv[2]);
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		if (kinds[i].run())
			return 1;
		printf("%llu\n", (unsigned long long)(now() - begin));
		return 0;
	}
	fprintf(stderr, "usage: workload calls|locks|copy N\n");
	return 2;
}
