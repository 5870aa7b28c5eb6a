/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call chain through functions of CANN, which call back: several calls with probed returns are open on a
 * thread at once. Its own backtrace of each point where it burns CPU or sleeps is printed before anybody
 * watches: `chain TITLE outermost;...;innermost`. Then it waits for a line on stdin and runs MILLISECONDS in
 * two threads. Wants libacl_rt.so of the tests.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ULL
#define KEEP __attribute__((noinline, noclone, used))
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")
#define FRAMES 64

typedef void (*callback)(int what, void *arg);

static int (*init)(const char *config); /* calls back by a tail call */
static int (*set_device)(int device);
static int (*synchronize_device)(void);
static int (*synchronize_stream)(void *stream);
static int (*allocate)(void **ptr, size_t size, int policy);

static __thread bool showing; /* print where it is instead of working */
static __thread int depth;
static __thread jmp_buf out;
static volatile uint64_t sink;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Without itself. A function without a dynamic symbol is `?`. */
KEEP void print_chain(const char *title)
{
	void *frames[FRAMES];
	int n = backtrace(frames, FRAMES);

	printf("chain %s ", title);
	while (--n) {
		Dl_info info = { 0 };

		dladdr((char *)frames[n] - 1, &info);
		printf("%s%s", info.dli_sname ? info.dli_sname : "?", n > 1 ? ";" : "\n");
	}
}

KEEP void burn(const char *title)
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);

	if (showing)
		print_chain(title);
	while (!showing && now(CLOCK_THREAD_CPUTIME_ID) - begin < 3 * MS)
		for (int i = 0; i < 50000; i++)
			sink += (uint64_t)i;
}

KEEP void nap(const char *title)
{
	const struct timespec t = { .tv_nsec = 3 * MS };

	if (showing)
		print_chain(title);
	else
		nanosleep(&t, NULL);
	NO_TAIL_CALL;
}

KEEP void deepest(void)
{
	burn("burn");
	nap("nap");
	NO_TAIL_CALL;
}

/* Where calls of the library end up: the next level, by another function each. */
KEEP void called_back(int what, void *arg)
{
	(void)what;
	(void)arg;
	switch (depth++) {
	case 0:
		synchronize_device();
		break;
	case 1:
		set_device(0);
		break;
	case 2: /* a function inside itself */
		set_device(1);
		break;
	case 3:
		init(NULL);
		break;
	case 100:
		if (showing)
			print_chain("jump");
		longjmp(out, 1);
	default:
		deepest();
	}
	depth--;
}

/* Leaves a call, and works where the stack of that call was. */
KEEP void leaves_a_call(void)
{
	volatile char room[256];
	void *p;

	room[0] = 0;
	depth = 100;
	if (!setjmp(out))
		allocate(&p, 1, 0);
	depth = 0;
	burn(room[0] ? "" : "after_jump");
	NO_TAIL_CALL;
}

KEEP void nests(void)
{
	depth = 0;
	synchronize_stream(NULL);
	NO_TAIL_CALL;
}

KEEP void rounds(uint64_t ns)
{
	uint64_t begin = now(CLOCK_MONOTONIC);

	do {
		nests();
		leaves_a_call();
		burn("outside");
	} while (now(CLOCK_MONOTONIC) - begin < ns && !showing);
}

static pthread_barrier_t go;

KEEP void *in_a_thread(void *ns)
{
	showing = true;
	rounds(0);
	showing = false;
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&go);
	rounds(*(uint64_t *)ns);
	NO_TAIL_CALL;
	return NULL;
}

static void *find(void *library, const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		fprintf(stderr, "nested_job: %s\n", dlerror());
		exit(1);
	}
	return f;
}

int main(int argc, char **argv)
{
	uint64_t ns = argc > 1 ? strtoull(argv[1], NULL, 10) * MS : 1000 * MS;
	void *library = dlopen("libacl_rt.so", RTLD_NOW | RTLD_GLOBAL);
	void (*set_callback)(callback f);
	pthread_t thread;
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	*(void **)&init = find(library, "aclInit");
	*(void **)&set_device = find(library, "aclrtSetDevice");
	*(void **)&synchronize_device = find(library, "aclrtSynchronizeDevice");
	*(void **)&synchronize_stream = find(library, "aclrtSynchronizeStream");
	*(void **)&allocate = find(library, "aclrtMalloc");
	*(void **)&set_callback = find(library, "test_set_callback");
	set_callback(called_back);
	pthread_barrier_init(&go, NULL, 2);
	showing = true;
	rounds(0);
	showing = false;
	if (pthread_create(&thread, NULL, in_a_thread, &ns))
		return 1;
	pthread_barrier_wait(&go);
	printf("ready %d\n", getpid());
	if (!fgets(line, sizeof(line), stdin))
		return 9;
	pthread_barrier_wait(&go);
	rounds(ns);
	pthread_join(thread, NULL);
	printf("done\n");
	return 0;
}
