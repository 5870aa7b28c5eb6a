/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `calls LIBRARY KIND CALLS WORK`: so many calls of a library's function, each after WORK steps of computing over 256 KB.
 * KIND: push, nop5, sub, by the function's first instruction, or mixed: each in turn. Prints the nanoseconds of CPU time
 * that the process used.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORDS (256 << 10 >> 3)

static uint64_t memory[WORDS];

typedef int (*function)(void *);

static const struct {
	const char *kind, *function;
} kinds[] = {
	{ "push", "aclrtSetDevice" },
	{ "nop5", "aclrtSynchronizeDevice" },
	{ "sub", "aclrtSynchronizeStream" },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* Functions that are called in turn; how many. */
static size_t find(void *library, const char *kind, function found[KINDS])
{
	size_t n = 0;

	for (size_t i = 0; i < KINDS; i++) {
		void *f = dlsym(library, kinds[i].function);

		if (f && (!strcmp(kind, kinds[i].kind) || !strcmp(kind, "mixed")))
			memcpy(&found[n++], &f, sizeof(f));
	}
	return n;
}

static uint64_t compute(uint64_t state, long steps)
{
	for (long i = 0; i < steps; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memory[state % WORDS] += state;
	}
	return state;
}

int main(int argc, char **argv)
{
	function found[KINDS] = { 0 };
	uint64_t state = 88172645463325252ULL;
	struct timespec ts;
	void *library;
	long calls, work;
	size_t n;

	if (argc != 5)
		return 2;
	library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	n = find(library, argv[2], found);
	calls = strtol(argv[3], NULL, 10);
	work = strtol(argv[4], NULL, 10);
	if (!n)
		return 2;
	for (long i = 0; i < calls; i++) {
		state = compute(state, work);
		found[(size_t)i % n](NULL);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	printf("%lld\n", (long long)ts.tv_sec * 1000000000 + ts.tv_nsec);
	return memory[0] == 1; /* so that it is computed */
}
