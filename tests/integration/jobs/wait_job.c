// SPDX-License-Identifier: BSD-2-Clause
/*
 * A job that knows who waited for whom, what it read and wrote, and how its memory came. Prints
 * "ready PID", waits for a line on stdin, works, prints facts as "NAME PID VALUE". Arguments: a
 * file to make, a character device to query.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20
#define HOLD_NS 20000000
#define FILE_BYTES (8 << 20)
#define PAGE 4096
#define FAULTS 64
#define SHORT_CALLS 1000000
#define POLL_MS 30
#define EPOLL_MS 40
#define SOCKET_BYTES 1000
#define SOCKET_ROUNDS 500

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void fact(const char *name, uint64_t value)
{
	printf("%s %d %llu\n", name, getpid(), (unsigned long long)value);
}

static void nap(long ns)
{
	struct timespec ts = { .tv_nsec = ns };

	nanosleep(&ts, NULL);
}

static void check(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

/* --- locks: the waiter requests the mutex when the holder has it for certain --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t held = PTHREAD_COND_INITIALIZER;
static int holds;

static void set_holds(int value)
{
	pthread_mutex_lock(&gate);
	holds = value;
	pthread_cond_broadcast(&held);
	pthread_mutex_unlock(&gate);
}

static void until_holds(int value)
{
	pthread_mutex_lock(&gate);
	while (holds != value)
		pthread_cond_wait(&held, &gate);
	pthread_mutex_unlock(&gate);
}

static void *holder(void *arg)
{
	fact("holder_tid", (uint64_t)syscall(SYS_gettid));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		set_holds(1);
		nap(HOLD_NS);
		pthread_mutex_unlock(&mutex);
		until_holds(0);
	}
	return arg;
}

static void *waiter(void *arg)
{
	uint64_t waited = 0;

	fact("waiter_tid", (uint64_t)syscall(SYS_gettid));
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began;

		until_holds(1);
		began = now();
		pthread_mutex_lock(&mutex);
		waited += now() - began;
		pthread_mutex_unlock(&mutex);
		set_holds(0);
	}
	fact("waited_ns", waited);
	return arg;
}

static void locks(void)
{
	pthread_t a, b;
	uint64_t began;

	fact("mutex_address", (uint64_t)(uintptr_t)&mutex);
	fact("rounds", ROUNDS);
	check(!pthread_create(&a, NULL, holder, NULL) && !pthread_create(&b, NULL, waiter, NULL), "thread");
	began = now();
	pthread_join(a, NULL);
	fact("join_ns", now() - began);
	pthread_join(b, NULL);
}

/* --- files, faults, sockets --- */

static void io_fact(const char *name, const char *key)
{
	FILE *f = fopen("/proc/thread-self/io", "re");
	unsigned long long value;
	char line[128];

	check(f != NULL, "/proc/thread-self/io");
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), ": %llu", &value) == 1)
			fact(name, value);
	fclose(f);
}

static void faults(int fd)
{
	struct rusage before, after;
	volatile long sum = 0;
	uint64_t began;
	char *map, *fresh;

	check(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "posix_fadvise");
	map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	fresh = mmap(NULL, FAULTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(map != MAP_FAILED && fresh != MAP_FAILED, "mmap");
	madvise(map, FILE_BYTES, MADV_RANDOM);
	madvise(fresh, FAULTS * PAGE, MADV_NOHUGEPAGE);
	fact("fault_address", (uint64_t)(uintptr_t)map);
	getrusage(RUSAGE_THREAD, &before);
	began = now();
	for (int i = 0; i < FAULTS; i++)
		sum += map[(long)i * (FILE_BYTES / FAULTS)];
	fact("touch_ns", now() - began);
	for (int i = 0; i < FAULTS; i++)
		fresh[i * PAGE] = 1;
	getrusage(RUSAGE_THREAD, &after);
	fact("touch_major", after.ru_majflt - before.ru_majflt);
	fact("touch_minor", after.ru_minflt - before.ru_minflt);
}

static void files(const char *path)
{
	char *block = NULL;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), direct;

	check(fd >= 0 && !posix_memalign((void **)&block, PAGE, 1 << 20), path);
	memset(block, 1, 1 << 20);
	for (int i = 0; i < FILE_BYTES >> 20; i++)
		check(write(fd, block, 1 << 20) == 1 << 20, "write");
	check(!fsync(fd), "fsync");
	faults(fd);
	direct = open(path, O_RDONLY | O_DIRECT);
	check(direct >= 0, "O_DIRECT");
	for (int i = 0; i < FILE_BYTES >> 20; i++)
		check(pread(direct, block, 1 << 20, (off_t)i << 20) == 1 << 20, "pread");
	fact("direct_bytes", FILE_BYTES);
	close(direct);
	close(fd);
	free(block);
}

static void sockets(void)
{
	char bytes[SOCKET_BYTES] = { 0 };
	int pair[2];

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	for (int i = 0; i < SOCKET_ROUNDS; i++) {
		ssize_t n = i % 2 ? write(pair[0], bytes, sizeof(bytes))
				  : send(pair[0], bytes, sizeof(bytes), 0);

		check(n == SOCKET_BYTES, "send");
		n = i % 2 ? recv(pair[1], bytes, sizeof(bytes), 0) : read(pair[1], bytes, sizeof(bytes));
		check(n == SOCKET_BYTES, "receive");
	}
	fact("socket_bytes", SOCKET_BYTES * SOCKET_ROUNDS);
	close(pair[0]);
	close(pair[1]);
}

static void waits(const char *device)
{
	struct pollfd none = { .fd = -1 };
	struct epoll_event event;
	int epoll = epoll_create1(0), fd = open(device, O_RDONLY);

	poll(&none, 1, POLL_MS);
	epoll_wait(epoll, &event, 1, EPOLL_MS);
	check(fd >= 0, device);
	fact("device_fd", fd);
	fact("ioctl_failed", ioctl(fd, 0x5a03, NULL) < 0);
	close(fd);
	close(epoll);
}

int main(int argc, char **argv)
{
	struct rusage usage;
	char go[8];

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	fact("ready", 1);
	if (!fgets(go, sizeof(go), stdin))
		return 1;
	locks();
	getrusage(RUSAGE_SELF, &usage);
	fact("minor_before", usage.ru_minflt);
	fact("major_before", usage.ru_majflt);
	io_fact("read_before", "read_bytes");
	io_fact("written_before", "write_bytes");
	files(argv[1]);
	io_fact("read_after", "read_bytes");
	io_fact("written_after", "write_bytes");
	sockets();
	waits(argv[2]);
	for (int i = 0; i < SHORT_CALLS; i++)
		syscall(SYS_getppid);
	fact("getppid", SHORT_CALLS);
	getrusage(RUSAGE_SELF, &usage);
	fact("minor", usage.ru_minflt);
	fact("major", usage.ru_majflt);
	return 5;
}
