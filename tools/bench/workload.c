/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fixed amount of work for the operating system: `workload calls N` system calls, `workload locks N`
 * turns of four threads that fight for a mutex, `workload copy N` MB from one file to another in the
 * current directory, `workload ioctls N` ioctls on a device node that has the name of one of the NPU
 * driver's, and `workload launches N` the same with 20 us of computing before each. Prints the nanoseconds
 * that it took. `workload within COMMAND...` runs a command, with its tracer, where there is such a node:
 * in a /dev of its own.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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

#define SETTLE_US 500000 /* for the tracer, which looks at what was executed */
#define LAUNCH_NS 20000

/* Of a job's own /dev a tracer need not believe what a node is called: it is in the tracer's too. */
static int within(char **command)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("t", "/dev", "tmpfs", 0, NULL) || mknod("/dev/devmm_svm", S_IFCHR | 0600, makedev(1, 5)) ||
	    mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)))
		return 1;
	execvp(command[0], command);
	return 1;
}

static int call_node(uint64_t before)
{
	uint64_t arg[14] = { 0 };
	int fd = open("/dev/devmm_svm", O_RDWR);

	for (long i = 0; fd >= 0 && i < amount; i++) {
		for (uint64_t end = before ? now() + before : 0; end && now() < end;)
			;
		ioctl(fd, _IO('M', 3), arg);
	}
	return fd < 0;
}

static int ioctls(void)
{
	return call_node(0);
}

static int launches(void)
{
	return call_node(LAUNCH_NS);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} kinds[] = { { "calls", calls },
		      { "locks", locks },
		      { "copy", copy },
		      { "ioctls", ioctls },
		      { "launches", launches } };
	bool needs_node = argc == 3 && (!strcmp(argv[1], "ioctls") || !strcmp(argv[1], "launches"));

	if (argc > 2 && !strcmp(argv[1], "within"))
		return within(argv + 2);
	if (needs_node)
		usleep(SETTLE_US);

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
	fprintf(stderr,
		"usage: workload calls|locks|copy|ioctls|launches N\n       workload within COMMAND...\n");
	return 2;
}
