// SPDX-License-Identifier: BSD-2-Clause
/*
 * busy_calls_job LIBRARY THREADS: threads that are in a call half of the time. Prints "ready PID", waits for
 * a line on stdin, and prints "call TID BEGIN END" (CLOCK_MONOTONIC ns) of the last calls of each: times that
 * were read inside the function. LIBRARY is the libacl_rt.so of the tests.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALL_NS 2000000
#define KEPT 1024 /* calls of a thread: some seconds */
#define THREADS 256

static struct thread {
	int tid;
	unsigned int n;
	struct {
		uint64_t begin, end;
	} calls[KEPT];
} threads[THREADS];

static __thread struct thread *self;
static int (*synchronize)(void *);

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void wait_some(void)
{
	const struct timespec pause = { .tv_nsec = CALL_NS };

	nanosleep(&pause, NULL);
}

/*
 * In the function, behind what is probed at its entry: a thread that waits for a CPU in front of it is in no
 * call yet.
 */
static void on_call(int what, void *arg)
{
	unsigned int i = self->n % KEPT;

	(void)what;
	(void)arg;
	self->calls[i].begin = now();
	wait_some();
	self->calls[i].end = now();
}

/* Deeper on the stack than anything that the thread does besides. */
static __attribute__((noinline)) int call(void)
{
	volatile char room[4096];

	room[0] = 0;
	return synchronize(NULL) + room[0];
}

static void *run(void *arg)
{
	struct thread *t = arg;

	self = t;
	t->tid = (int)syscall(SYS_gettid);
	for (;;) {
		call();
		t->n++;
		wait_some();
	}
	return NULL;
}

static void report(const struct thread *t)
{
	for (unsigned int i = 0; i < KEPT && i < t->n; i++)
		printf("call %d %lu %lu\n", t->tid, t->calls[i].begin, t->calls[i].end);
}

int main(int argc, char **argv)
{
	void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*set_callback)(void (*f)(int what, void *arg)) = lib ? dlsym(lib, "test_set_callback") : NULL;

	int n = argc == 3 ? atoi(argv[2]) : 0;

	synchronize = lib ? dlsym(lib, "aclrtSynchronizeStream") : NULL;
	if (!set_callback || !synchronize || n > THREADS) {
		fprintf(stderr, "busy_calls_job: %s\n", lib ? "no such library" : dlerror());
		return 1;
	}
	set_callback(on_call);
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, &threads[i]))
			return 1;
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	getchar();
	for (int i = 0; i < n; i++)
		report(&threads[i]);
	return 0;
}
