// SPDX-License-Identifier: BSD-2-Clause
/*
 * A job that counts its own system calls, sleeps and CPU time, to be compared with what a tracer saw.
 * Prints "ready PID", waits for a line on stdin, works, prints facts as "NAME PID VALUE", exits with 5.
 * The child forks a grandchild, which runs this program again as `leaf`.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 400000000ULL
#define NAPS 20
#define NAP_NS 2000000
#define LONG_NAPS 10
#define LONG_NAP_NS 30000000
#define ROUNDS 200
#define HOLD_NS 50000
#define BRIEF 30
#define BRIEF_NS 3000000ULL

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void fact(const char *name, uint64_t value)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%s %d %llu\n", name, getpid(), (unsigned long long)value);

	if (write(1, line, n) != n)
		abort();
}

static void thread_fact(const char *who, const char *what, uint64_t value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", who, what);
	fact(name, value);
}

static void thread_end(const char *who, uint64_t began)
{
	thread_fact(who, "tid", (uint64_t)syscall(SYS_gettid));
	thread_fact(who, "wall_ns", now(CLOCK_MONOTONIC) - began);
	thread_fact(who, "cpu_ns", now(CLOCK_THREAD_CPUTIME_ID));
}

static void *spin(void *arg)
{
	uint64_t began = now(CLOCK_MONOTONIC);

	while (now(CLOCK_THREAD_CPUTIME_ID) < SPIN_NS)
		for (volatile int i = 0; i < 100000; i++)
			;
	thread_end("spin", began);
	return arg;
}

struct brief {
	uint64_t cpu, wall;
};

/* Its life is a single stretch on the CPU, if nobody interrupts it. */
static void *brief(void *arg)
{
	uint64_t began = now(CLOCK_MONOTONIC);
	struct brief *elapsed = arg;

	while (now(CLOCK_THREAD_CPUTIME_ID) < BRIEF_NS)
		;
	elapsed->cpu = now(CLOCK_THREAD_CPUTIME_ID);
	elapsed->wall = now(CLOCK_MONOTONIC) - began;
	fact("brief_tid", (uint64_t)syscall(SYS_gettid));
	return NULL;
}

static void brief_threads(void)
{
	struct brief total = {};

	for (int i = 0; i < BRIEF; i++) {
		struct brief elapsed;
		pthread_t t;

		if (pthread_create(&t, NULL, brief, &elapsed) || pthread_join(t, NULL))
			abort();
		total.cpu += elapsed.cpu;
		total.wall += elapsed.wall;
	}
	fact("brief_cpu_ns", total.cpu);
	fact("brief_wall_ns", total.wall);
}

static void nap(long ns)
{
	struct timespec ts = { .tv_nsec = ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void *sleeper(void *arg)
{
	uint64_t began = now(CLOCK_MONOTONIC);

	for (int i = 0; i < LONG_NAPS; i++)
		nap(LONG_NAP_NS);
	thread_end("sleep", began);
	return arg;
}

static _Atomic uint32_t ball;

/*
 * Each holds the ball for a while, so that the other waits for longer
 * than a call takes, on however many CPUs.
 */
static void *player(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	uint64_t waits = 0, wakes = 0, waited = 0;

	for (int i = 0; i < ROUNDS; i++) {
		while (atomic_load(&ball) % 2 != me) {
			uint64_t began = now(CLOCK_MONOTONIC);

			syscall(SYS_futex, &ball, FUTEX_WAIT, me ? i * 2 : i * 2 - 1, NULL, NULL, 0);
			waited += now(CLOCK_MONOTONIC) - began;
			waits++;
		}
		nap(HOLD_NS);
		atomic_fetch_add(&ball, 1);
		syscall(SYS_futex, &ball, FUTEX_WAKE, 1, NULL, NULL, 0);
		wakes++;
	}
	thread_fact(me ? "player1" : "player0", "waits", waits);
	thread_fact(me ? "player1" : "player0", "waited_ns", waited);
	thread_fact(me ? "player1" : "player0", "wakes", wakes);
	thread_fact(me ? "player1" : "player0", "tid", (uint64_t)syscall(SYS_gettid));
	return NULL;
}

static void call_kernel(int parents, int priorities, int opens, int writes)
{
	int fd = open("/dev/null", O_WRONLY);

	for (int i = 0; i < parents; i++)
		syscall(SYS_getppid);
	for (int i = 0; i < priorities; i++)
		getpriority(PRIO_PROCESS, 0);
	for (int i = 0; i < opens; i++)
		close(openat(AT_FDCWD, "/dev/null", O_RDONLY));
	for (int i = 0; i < writes; i++)
		if (write(fd, "x", 1) != 1)
			abort();
	close(fd);
	fact("getppid", parents);
	fact("getpriority", priorities);
	fact("null_fd", fd);
	fact("null_writes", writes);
	fact("opens", opens + 1);
}

static void leaf(void)
{
	call_kernel(50, 25, 5, 5);
	nap(300000000);
	exit(7);
}

static void child(char *self)
{
	char *argv[] = { self, "leaf", NULL };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	call_kernel(100, 50, 10, 10);
	fact("child", pid);
	nap(300000000);
	if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
		_exit(1);
	_exit(6);
}

static uint64_t cpu_of(const struct rusage *r)
{
	return (r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000000ULL +
	       (r->ru_utime.tv_usec + r->ru_stime.tv_usec) * 1000ULL;
}

int main(int argc, char **argv)
{
	void *(*const what[])(void *) = { player, player, spin, sleeper };
	struct rusage before, after;
	pthread_t threads[4];
	uint64_t began;
	int status;
	char go[8];
	pid_t pid;

	if (argc > 1 && strcmp(argv[1], "leaf") == 0)
		leaf();
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!fgets(go, sizeof(go), stdin))
		return 1;
	getrusage(RUSAGE_SELF, &before);
	fact("futex_address", (uint64_t)(uintptr_t)&ball);
	pid = fork();
	if (pid == 0)
		child(argv[0]);
	fact("child", pid);
	call_kernel(1000, 500, 200, 300);
	began = now(CLOCK_MONOTONIC);
	for (int i = 0; i < NAPS; i++)
		nap(NAP_NS);
	fact("naps", NAPS);
	fact("naps_wall_ns", now(CLOCK_MONOTONIC) - began);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, what[i], (void *)(uintptr_t)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	brief_threads();
	if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 6)
		return 1;
	getrusage(RUSAGE_SELF, &after);
	fact("cpu_ns", cpu_of(&after) - cpu_of(&before));
	fact("switches", after.ru_nvcsw - before.ru_nvcsw);
	fact("preempted", after.ru_nivcsw - before.ru_nivcsw);
	return 5;
}
