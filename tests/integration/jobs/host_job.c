/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uses the host in amounts that it knows, and prints them: `name pid value` lines. Starts on a line of input
 * (argument `netns`: in a network namespace of its own) and ends on another.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MEMORY (192UL << 20)
#define FILE_BYTES (48UL << 20)
#define BLOCK (1UL << 20)
#define STREAM (24UL << 20)
#define DATAGRAMS 4000
#define DATAGRAM 1200

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static void report(const char *name, long who, unsigned long long value)
{
	pthread_mutex_lock(&printing);
	printf("%s %ld %llu\n", name, who, value);
	fflush(stdout);
	pthread_mutex_unlock(&printing);
}

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static void nap(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static void spin(uint64_t ns)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + ns;
	volatile uint64_t x = 0;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 10000; i++)
			x += (uint64_t)i;
}

static void report_cpu(const char *name)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	report(name, gettid(),
	       ((uint64_t)r.ru_utime.tv_sec + (uint64_t)r.ru_stime.tv_sec) * 1000000000U +
		       ((uint64_t)r.ru_utime.tv_usec + (uint64_t)r.ru_stime.tv_usec) * 1000U);
}

/* The whole CPU, or half of it in short pieces. Then it waits, so that its end is not what is measured. */
static void *work(void *arg)
{
	const char *name = arg;

	pthread_setname_np(pthread_self(), name);
	if (!strcmp(name, "whole")) {
		spin(1200000000);
	} else {
		for (int i = 0; i < 60; i++) {
			spin(10000000);
			nap(10);
		}
	}
	report_cpu("thread_cpu_ns");
	nap(1000);
	return NULL;
}

static void use_cpu(void)
{
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, work, "whole");
	pthread_create(&threads[1], NULL, work, "half");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void use_memory(void)
{
	char *p = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(p != MAP_FAILED, "mmap");
	memset(p, 1, MEMORY);
	report("memory", getpid(), MEMORY);
	nap(500);
	munmap(p, MEMORY);
	nap(200);
}

/* Past the page cache where the file system allows it, so that reading reads the device again. */
static void use_disk(const char *path)
{
	char *block = NULL;
	int fd;

	need(!posix_memalign((void **)&block, 4096, BLOCK), "memory");
	memset(block, 7, BLOCK);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
	need(fd >= 0, path);
	for (size_t done = 0; done < FILE_BYTES; done += BLOCK)
		need(pwrite(fd, block, BLOCK, (off_t)done) == (ssize_t)BLOCK, "write");
	fsync(fd);
	report("written", getpid(), FILE_BYTES);
	for (size_t done = 0; done < FILE_BYTES; done += BLOCK)
		need(pread(fd, block, BLOCK, (off_t)done) == (ssize_t)BLOCK, "read");
	report("read", getpid(), FILE_BYTES);
	close(fd);
	unlink(path);
	free(block);
	nap(200);
}

static int listener(int type, struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	need(fd >= 0 && !bind(fd, (struct sockaddr *)at, sizeof(*at)) &&
		     !getsockname(fd, (struct sockaddr *)at, &len),
	     "socket");
	return fd;
}

static void *send_stream(void *arg)
{
	int fd = *(int *)arg;
	static char data[65536];
	uint64_t sent = 0;

	while (sent < STREAM) {
		ssize_t n = write(fd, data, sizeof(data));

		need(n > 0, "send");
		sent += (uint64_t)n;
	}
	shutdown(fd, SHUT_WR);
	report("stream_sent", getpid(), sent);
	return NULL;
}

static void use_stream(void)
{
	static char data[65536];
	struct sockaddr_in at;
	int server = listener(SOCK_STREAM, &at), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	uint64_t received = 0;
	pthread_t thread;
	ssize_t n;

	need(!listen(server, 1) && !connect(client, (struct sockaddr *)&at, sizeof(at)), "connect");
	fd = accept(server, NULL, NULL);
	pthread_create(&thread, NULL, send_stream, &client);
	while ((n = read(fd, data, sizeof(data))) > 0)
		received += (uint64_t)n;
	pthread_join(thread, NULL);
	report("stream_received", getpid(), received);
	close(fd);
	close(client);
	close(server);
}

/* Each looks at its datagram before it takes it: what is looked at is received once. */
static void use_datagrams(void)
{
	char data[DATAGRAM] = { 0 };
	struct sockaddr_in at;
	int server = listener(SOCK_DGRAM, &at), client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < DATAGRAMS; i++) {
		need(sendto(client, data, sizeof(data), 0, (struct sockaddr *)&at, sizeof(at)) == DATAGRAM,
		     "sendto");
		need(recv(server, data, sizeof(data), MSG_PEEK) == DATAGRAM, "peek");
		need(recv(server, data, sizeof(data), 0) == DATAGRAM, "recv");
	}
	report("datagrams", getpid(), DATAGRAMS);
	report("datagram_bytes", getpid(), (uint64_t)DATAGRAMS * DATAGRAM);
	close(client);
	close(server);
	nap(300);
}

static void own_network(void)
{
	struct ifreq up = { .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd;

	need(!unshare(CLONE_NEWNET), "unshare");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strcpy(up.ifr_name, "lo");
	need(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &up), "lo");
	close(fd);
}

int main(int argc, char **argv)
{
	char line[16];

	if (argc > 2 && !strcmp(argv[2], "netns"))
		own_network();
	printf("ready\n");
	fflush(stdout);
	need(fgets(line, sizeof(line), stdin) != NULL, "stdin");
	use_cpu();
	use_memory();
	if (argc > 1)
		use_disk(argv[1]);
	use_stream();
	use_datagrams();
	printf("used\n");
	fflush(stdout);
	need(fgets(line, sizeof(line), stdin) != NULL, "stdin");
	return 0;
}
