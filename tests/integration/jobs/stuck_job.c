// SPDX-License-Identifier: BSD-2-Clause
/*
 * stuck_job LIBRARY FIFO: a job whose threads all wait for ever, each in another call. Prints "ready PID",
 * waits for a line on stdin, starts them, prints "thread NAME TID NS" for each (CLOCK_MONOTONIC before its
 * last call), and "stuck" when all of them sleep. LIBRARY is the libacl_rt.so of the tests, FIFO has no
 * reader.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef void (*hook)(int what, void *arg);
enum { SYNC_DEVICE = 3, SYNC_STREAM = 4, MALLOC = 5 };

static int (*sync_device)(void);
static int (*sync_stream)(void *);
static int (*device_malloc)(void **, size_t, int);
static const char *fifo;
static int empty[2]; /* a pipe into which nothing is written */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int started;
static pid_t tids[16];
static __thread jmp_buf out;

static void *symbol(void *lib, const char *name)
{
	void *f = dlsym(lib, name);

	if (!f)
		abort();
	return f;
}

/* The last line of a thread. */
static void begin(const char *name)
{
	struct timespec ts;
	char line[128];
	int n;

	tids[atomic_fetch_add(&started, 1)] = syscall(SYS_gettid);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	n = snprintf(line, sizeof(line), "thread %s %ld %llu\n", name, syscall(SYS_gettid),
		     ts.tv_sec * 1000000000ULL + ts.tv_nsec);
	if (write(1, line, n) != n)
		abort();
}

static void wait_for_ever(void)
{
	char c;

	if (read(empty[0], &c, 1) != 0)
		abort();
}

static void in_library(int what, void *arg)
{
	(void)arg;
	if (what == SYNC_DEVICE)
		longjmp(out, 1);
	wait_for_ever();
}

static void *reads(void *arg)
{
	begin("read");
	wait_for_ever();
	return arg;
}

static void *locks(void *arg)
{
	begin("lock");
	pthread_mutex_lock(&held);
	return arg;
}

static void *opens(void *arg)
{
	begin("open");
	open(fifo, O_WRONLY);
	return arg;
}

static void *synchronizes(void *arg)
{
	begin("sync");
	sync_stream((void *)0x5151);
	return arg;
}

static void *allocates(void *arg)
{
	void *ptr = (void *)0x1234;

	begin("malloc");
	device_malloc(&ptr, 4096, 0);
	return arg;
}

__attribute__((noinline)) static int deeper(void)
{
	volatile char frame[8192];

	frame[0] = 1;
	return sync_device() + frame[0];
}

/* It has left its call by a jump, to a frame far above. */
static void *jumps(void *arg)
{
	if (!setjmp(out))
		deeper();
	begin("jump");
	pause();
	return arg;
}

static int sleeps(pid_t tid)
{
	char path[64], text[512] = "", *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f || !fread(text, 1, sizeof(text) - 1, f))
		abort();
	fclose(f);
	at = strrchr(text, ')');
	return at && at[2] == 'S';
}

int main(int argc, char **argv)
{
	void *(*const bodies[])(void *) = { reads, locks, opens, synchronizes, allocates, jumps };
	const int n = sizeof(bodies) / sizeof(*bodies);
	void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL, *f;
	void (*set)(hook);
	char line[64];
	pthread_t t;

	if (!lib || pipe(empty))
		return 1;
	f = symbol(lib, "test_set_callback");
	memcpy(&set, &f, sizeof(f));
	f = symbol(lib, "aclrtSynchronizeDevice");
	memcpy(&sync_device, &f, sizeof(f));
	f = symbol(lib, "aclrtSynchronizeStream");
	memcpy(&sync_stream, &f, sizeof(f));
	f = symbol(lib, "aclrtMalloc");
	memcpy(&device_malloc, &f, sizeof(f));
	set(in_library);
	fifo = argv[2];
	pthread_mutex_lock(&held);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready %d\n", getpid());
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < n; i++)
		if (pthread_create(&t, NULL, bodies[i], NULL))
			return 1;
	/* Asleep twice in a row: not in the write of its line. */
	for (int asleep = 0, all; asleep < 2; asleep = all ? asleep + 1 : 0) {
		usleep(50000);
		all = atomic_load(&started) == n;
		for (int i = 0; all && i < n; i++)
			all = sleeps(tids[i]);
	}
	printf("stuck\n");
	fgets(line, sizeof(line), stdin);
	_exit(0);
}
