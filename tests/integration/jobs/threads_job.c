/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads_job LIBRARY THREADS CALLS: as many threads, all alive at once, each
 * calls aclrtSynchronizeDevice as often.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*synchronize)(void);
static pthread_barrier_t all;
static long calls;

static void *run(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&all);
	for (long i = 0; i < calls; i++)
		synchronize();
	pthread_barrier_wait(&all);
	return NULL;
}

int main(int argc, char **argv)
{
	void *lib = argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL,
	     *f = lib ? dlsym(lib, "aclrtSynchronizeDevice") : NULL;
	int n = f ? atoi(argv[2]) : 0;
	pthread_attr_t attr;
	pthread_t t;

	if (!f || n < 1)
		return 1;
	memcpy(&synchronize, &f, sizeof(f));
	calls = atol(argv[3]);
	pthread_barrier_init(&all, NULL, n + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t, &attr, run, NULL)) {
			puts("no thread");
			return 2;
		}
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	printf("called %ld\n", n * calls);
	return 4;
}
