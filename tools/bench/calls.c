/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `calls LIBRARY KIND RATE STEPS SAMPLES`: calls of a library's function, each after STEPS of computing;
 * every other 10 ms step_here, which has no probe, is called instead (alternate.h). RATE: of calls a
 * second; 0: as fast as computing lets it. KIND: push, nop5, sub, by the function's first instruction, or
 * mixed: each in turn.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alternate.h"

typedef int (*function)(void *);

static const struct {
	const char *kind, *function;
} kinds[] = {
	{ "push", "aclrtFree" },
	{ "nop5", "aclrtSynchronizeDevice" },
	{ "sub", "aclrtSynchronizeStream" },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static function found[KINDS], plain; /* those that are called in turn */
static size_t n_found;

static void resolve(void *library, const char *kind)
{
	void *at = dlsym(library, "step_here");

	memcpy(&plain, &at, sizeof(plain));
	for (size_t i = 0; i < KINDS; i++) {
		void *f = dlsym(library, kinds[i].function);

		if (f && (!strcmp(kind, kinds[i].kind) || !strcmp(kind, "mixed")))
			memcpy(&found[n_found++], &f, sizeof(f));
	}
}

static void call_probed(void)
{
	static size_t calls;

	found[calls++ % n_found](NULL);
}

static void call_plain(void)
{
	plain(NULL);
}

int main(int argc, char **argv)
{
	struct alternation a = { .probed = call_probed, .plain = call_plain };
	void *library;
	long rate;

	if (argc != 6)
		return 2;
	library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	resolve(library, argv[2]);
	rate = strtol(argv[3], NULL, 10);
	if (!n_found || !plain || rate < 0)
		return 2;
	a.gap_ns = rate ? 1000000000ULL / (uint64_t)rate : 0;
	a.steps = strtol(argv[4], NULL, 10);
	a.samples = argv[5];
	return alternate(&a) ? 1 : 0;
}
