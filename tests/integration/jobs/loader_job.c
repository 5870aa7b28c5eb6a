// SPDX-License-Identifier: BSD-2-Clause
/*
 * A job that executes commands from stdin, a command a line, and answers each with a line:
 *   load PATH          dlopen          -> loaded PATH
 *   map PATH           mmap as code    -> mapped PATH
 *   call SYMBOL N      N calls         -> called SYMBOL N
 *   spin MS            calls aclrtSynchronizeDevice until then -> called aclrtSynchronizeDevice N
 *   work MS            CPU and memory, no probed call -> worked CHECKSUM
 *   quit STATUS        -> exits
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int (*function)(void *, long, long, long, long, void *);

static function find(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);
	function typed;

	if (!f) {
		printf("no function %s\n", name);
		exit(1);
	}
	memcpy(&typed, &f, sizeof(f));
	return typed;
}

/* As code that is never run: what is in the file does not matter. */
static int map(const char *path)
{
	int fd = open(path, O_RDONLY);
	void *mem = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	close(fd);
	return mem == MAP_FAILED ? -1 : 0;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static long call(const char *name, long n)
{
	function f = find(name);
	uint64_t out = 0;

	for (long i = 0; i < n; i++)
		f(&out, i, 0, 0, 0, &out);
	return n;
}

static long spin(long ms)
{
	uint64_t end = now_ms() + ms;
	long n = 0;

	while (now_ms() < end) {
		n += call("aclrtSynchronizeDevice", 10);
		usleep(1000);
	}
	return n;
}

/* The result depends on nothing but `rounds`. */
static uint64_t work(long rounds)
{
	uint64_t h = 1;

	for (long i = 0; i < rounds * 1000; i++)
		h = (h ^ (uint64_t)i) * 0x100000001b3ULL;
	return h;
}

int main(void)
{
	char line[4096], name[4000];
	long n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready %d\n", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "load %3999s", name) == 1) {
			if (!dlopen(name, RTLD_NOW | RTLD_GLOBAL)) {
				printf("%s\n", dlerror());
				return 1;
			}
			printf("loaded %s\n", name);
		} else if (sscanf(line, "map %3999s", name) == 1) {
			if (map(name))
				return 1;
			printf("mapped %s\n", name);
		} else if (sscanf(line, "call %3999s %ld", name, &n) == 2) {
			printf("called %s %ld\n", name, call(name, n));
		} else if (sscanf(line, "spin %ld", &n) == 1) {
			printf("called aclrtSynchronizeDevice %ld\n", spin(n));
		} else if (sscanf(line, "work %ld", &n) == 1) {
			printf("worked %016llx\n", (unsigned long long)work(n));
		} else if (sscanf(line, "quit %ld", &n) == 1) {
			return (int)n;
		} else {
			printf("what is %s", line);
			return 1;
		}
	}
	return 0;
}
