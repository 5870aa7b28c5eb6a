/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks and ranges. Prints for each what it did and when, CLOCK_REALTIME ns just before and after: message,
 * domain (made before "ready" with the argument early), thread that began it, thread that ended it, before
 * and after its begin, before and after its end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void (*mark)(const char *, void *);
static uint64_t (*start)(const char *, void *);
static void (*end)(uint64_t);
static void *(*domain_create)(const char *);
static uint64_t (*domain_start)(void *, const char *, void *);
static void (*domain_end)(void *, uint64_t);

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t outer, ends[2];
static int ender;

static void *end_outer(void *arg)
{
	(void)arg;
	ender = syscall(SYS_gettid);
	ends[0] = now();
	end(outer);
	ends[1] = now();
	return NULL;
}

static void once(void *domain, int other_thread)
{
	uint64_t a[2], m[2], b[2], c[2], inner;
	int me = syscall(SYS_gettid);
	pthread_t thread;

	domain = domain ? domain : domain_create("input");
	a[0] = now();
	outer = start("training step", NULL);
	a[1] = now();
	usleep(1000);
	m[0] = now();
	mark("here, \"now\"", NULL);
	m[1] = now();
	b[0] = now();
	inner = domain_start(domain, "read batch", NULL);
	b[1] = now();
	usleep(1000);
	c[0] = now();
	domain_end(domain, inner);
	c[1] = now();
	if (other_thread && !pthread_create(&thread, NULL, end_outer, NULL))
		pthread_join(thread, NULL);
	else
		end_outer(NULL);
	start("never ends", NULL);
	printf("training step|default|%d|%d|%lu|%lu|%lu|%lu\n", me, ender, a[0], a[1], ends[0], ends[1]);
	printf("here, \"now\"|default|%d|%d|%lu|%lu|%lu|%lu\n", me, me, m[0], m[1], m[0], m[1]);
	printf("read batch|input|%d|%d|%lu|%lu|%lu|%lu\n", me, me, b[0], b[1], c[0], c[1]);
}

int main(int argc, char **argv)
{
	void *lib = dlopen("libms_tools_ext.so", RTLD_NOW), *domain = NULL;

	if (!lib || argc != 2)
		return 1;
	mark = dlsym(lib, "mstxMarkA");
	start = dlsym(lib, "mstxRangeStartA");
	end = dlsym(lib, "mstxRangeEnd");
	domain_create = dlsym(lib, "mstxDomainCreateA");
	domain_start = dlsym(lib, "mstxDomainRangeStartA");
	domain_end = dlsym(lib, "mstxDomainRangeEnd");
	if (!strcmp(argv[1], "early"))
		domain = domain_create("input");
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	once(domain, !strcmp(argv[1], "threads"));
	return 0;
}
