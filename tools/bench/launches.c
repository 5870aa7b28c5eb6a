/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launches RATE COUNT: a job whose host is what limits it: COUNT kernels, each launched as an aclnn operator with both of its
 * phases, and between them as much computing as makes RATE launches a second. It never waits. Prints the
 * CPU time that took, ns: as long as it takes on a CPU that nobody else has, what the kernel does in traps included.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int aclrtLaunchKernelWithHostArgs(void *function, uint32_t blocks, void *stream, void *config, void *args,
				  size_t size, void *holders, size_t n);
int aclDestroyAclOpExecutor(void *executor);
void phase1(const char *api, void **executor) __asm__("_Z19InitL2Phase1ContextPKcPP13aclOpExecutor");
void phase2(const char *api, void *executor) __asm__("_Z19InitL2Phase2ContextPKcP13aclOpExecutor");
void l0(const char *l0_operator, void *executor) __asm__("_Z13InitL0ContextPKcP13aclOpExecutor");

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void compute(uint64_t turns)
{
	for (uint64_t i = 0; i < turns; i++)
		__asm__ volatile("" ::"r"(i));
}

/* Turns of compute() in a microsecond: the best of some, for caches and clocks warm up. */
static double turns_of_us(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 50; i++) {
		uint64_t begin = now(), took;

		compute(1000000);
		took = now() - begin;
		if (took < best)
			best = took;
	}
	return 1e9 / (double)best;
}

static void launch(void)
{
	uint64_t args[2] = { 0 };
	void *executor;

	phase1("aclnnAdd", &executor);
	l0("Add", executor);
	phase2("aclnnAdd", executor);
	aclrtLaunchKernelWithHostArgs(args, 48, &executor, NULL, args, sizeof(args), NULL, 0);
	aclDestroyAclOpExecutor(executor);
}

int main(int argc, char **argv)
{
	double rate = argc > 1 ? atof(argv[1]) : 0;
	long count = argc > 2 ? atol(argv[2]) : 0;
	uint64_t turns, begin;

	if (rate <= 0 || count <= 0) {
		fprintf(stderr, "usage: launches RATE COUNT\n");
		return 2;
	}
	turns = (uint64_t)(turns_of_us() * 1e6 / rate);
	begin = now();
	for (long i = 0; i < count; i++) {
		launch();
		compute(turns);
	}
	printf("%llu\n", (unsigned long long)(now() - begin));
	return 0;
}
