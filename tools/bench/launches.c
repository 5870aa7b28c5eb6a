/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `launches PLAIN STEPS SAMPLES`: a job whose host is what limits it: it never waits. Kernels are launched as aclnn operators with both of
 * their phases, each after STEPS of computing; every other 10 ms through the library PLAIN, which has the same functions and no
 * name that is probed (alternate.h).
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alternate.h"

/* Functions of CANN that the launch passes through; cann_stub.c has both sets. */
struct path {
	void (*phase1)(const char *api, void **executor);
	void (*l0)(const char *l0_operator, void *executor);
	void (*phase2)(const char *api, void *executor);
	int (*launch)(void *function, uint32_t blocks, void *stream, void *config, void *args, size_t size,
		      void *holders, size_t n);
	int (*destroy)(void *executor);
};

static struct path probed, plain;

/* SCOPE: of dlsym. */
static int resolve(void *scope, struct path *path)
{
	const struct {
		const char *symbol;
		void *at;
	} members[] = {
		{ "_Z19InitL2Phase1ContextPKcPP13aclOpExecutor", &path->phase1 },
		{ "_Z13InitL0ContextPKcP13aclOpExecutor", &path->l0 },
		{ "_Z19InitL2Phase2ContextPKcP13aclOpExecutor", &path->phase2 },
		{ "aclrtLaunchKernelWithHostArgs", &path->launch },
		{ "aclDestroyAclOpExecutor", &path->destroy },
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		void *f = dlsym(scope, members[i].symbol);

		if (!f)
			return -1;
		memcpy(members[i].at, &f, sizeof(f));
	}
	return 0;
}

static void launch(const struct path *p)
{
	uint64_t host_args[2] = { 0 };
	void *executor;

	p->phase1("aclnnAdd", &executor);
	p->l0("Add", executor);
	p->phase2("aclnnAdd", executor);
	p->launch(host_args, 48, &executor, NULL, host_args, sizeof(host_args), NULL, 0);
	p->destroy(executor);
}

static void launch_probed(void)
{
	launch(&probed);
}

static void launch_plain(void)
{
	launch(&plain);
}

int main(int argc, char **argv)
{
	struct alternation a = { .probed = launch_probed, .plain = launch_plain };
	void *library;

	if (argc != 4)
		return 2;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library || resolve(library, &plain) || resolve(RTLD_DEFAULT, &probed)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	a.steps = strtol(argv[2], NULL, 10);
	a.samples = argv[3];
	return alternate(&a) ? 1 : 0;
}
